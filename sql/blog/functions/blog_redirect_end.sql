-- Ends the redirects whose slugs new posts have taken.
create or replace function blog_redirect_end() returns trigger language plpgsql as $$
begin
  delete from blog_redirect r using added where r.slug = added.slug;
  return null;
end $$;

create or replace trigger blog_redirect_end after insert on blog_post referencing new table as added
  for each statement execute function blog_redirect_end();
