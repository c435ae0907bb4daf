-- Returns the search vector of a page. A tsvector holds less than 1 MiB, and so does its `owned_vector`, which adds up
-- to 9 bytes per word. The first 100,000 characters always fit. If the first 600,000 characters of a longer text fit,
-- they are used.
create or replace function page_vector(content text) returns tsvector language plpgsql immutable parallel safe as $$
declare
  vector tsvector;
begin
  if length(content) > 100000 then
    begin
      vector := page_words(left(content, 600000));
      if pg_column_size(vector) + 9 * length(vector) < 1048576 then return vector; end if;
    exception when program_limit_exceeded then null;
    end;
  end if;
  return page_words(left(content, 100000));
end $$;
