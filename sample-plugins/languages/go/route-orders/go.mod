module route-orders

go 1.25
