-- A tsvector holds less than 1 MiB. 100,000 characters always fit; of longer texts, the first 600,000 if they fit.
create or replace function page_vector(given text) returns tsvector language plpgsql immutable parallel safe as $$
begin
  if length(given) <= 100000 then return to_tsvector('folded', given); end if;
  begin
    return to_tsvector('folded', left(given, 600000));
  exception when program_limit_exceeded then
    return to_tsvector('folded', left(given, 100000));
  end;
end $$;
