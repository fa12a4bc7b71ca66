"""Where operators keep things. Nothing here knows a query.

store           byte keys to pages, wherever the driver keeps them         pages     record batches as pages
row_buffer      rows in stream order         row_log     rows by number, forgotten in any order
key_table       keys as small numbers        word_table  the hash table below it     key_index   rows by key
calendar_queue  what happens when            last_rows   the last n rows of each partition
chains          rows of one key, newest first            bags, regions   many small arrays in one
"""
