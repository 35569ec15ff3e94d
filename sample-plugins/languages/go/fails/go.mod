module fails

go 1.25
