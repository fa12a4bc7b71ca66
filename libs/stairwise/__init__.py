"""Stairwise: thousands of windowed continuous queries over Kafka streams for about the price of one."""
