"""What passes between the services.

topics                    the names of Kafka's topics and what their partitions mean
batches, narrow           rows on s.*: Arrow batches and their headers, columns at their least width
plans, schemas            versions of streams and queries on plans
authority                 who may do what to which streams and queries, as the plans say
incarnations              where each incarnation of a stream begins and ends in in.*
reports, message_pieces   reports on results, cut where they are too large for a message
stream_standing, waiting  how far each part has come, and what a query waits for
"""
