-- Finds a free name for an imported tag whose own name is taken: its slug, with a number if necessary.
create or replace function blog_free_name(slug text) returns text language plpgsql stable as $$
declare
  free text := left(slug, 80);
  n integer := 1;
begin
  while exists (select from blog_tag where name = free) loop
    n := n + 1;
    free := left(slug, 70) || ' ' || n;
  end loop;
  return free;
end $$;
