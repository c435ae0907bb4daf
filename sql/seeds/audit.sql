-- The first months; the task that drops old ones makes the next.
select partitions_keep('audit_event', 0);
