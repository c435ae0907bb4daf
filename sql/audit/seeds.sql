-- The first partitions. The task that drops old months creates later ones.
select partitions_maintain('audit_event', 0);
