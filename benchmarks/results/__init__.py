"""What benchmarks measured: a line of JSON for each table, and the page that is made of them."""
