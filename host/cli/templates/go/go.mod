module {{crate_name}}

go 1.25
