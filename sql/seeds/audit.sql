-- The first months; the task that drops old months creates the next ones.
select partitions_maintain('audit_event', 0);
