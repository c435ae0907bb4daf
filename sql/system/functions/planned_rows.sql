-- Returns the planner's row estimate for a query, without running it. It is as accurate as the statistics of the
-- tables.
create or replace function planned_rows(query text) returns bigint language plpgsql as $$
declare
  plan json;
begin
  execute 'explain (format json) ' || query into plan;
  return (plan #>> '{0,Plan,Plan Rows}')::bigint;
end $$;
