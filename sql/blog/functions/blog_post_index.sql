-- Stores the search vectors of a post's texts, see `blog_post_part`.
create or replace function blog_post_index() returns trigger language plpgsql as $$
begin
  if tg_op = 'UPDATE' then
    delete from blog_post_part where post_id = new.id;
  end if;
  insert into blog_post_part (post_id, part, search)
  select new.id, 0, setweight(search_vector(new.title), 'A') || setweight(search_vector(coalesce(new.excerpt, '')), 'B')
  union all
  select new.id, n + 1, search_vector(page_part(new.content, n))
  from generate_series(0, page_last_part(new.content)) n where new.content <> '';
  return null;
end $$;

create or replace trigger blog_post_index_insert after insert on blog_post for each row execute function blog_post_index();

create or replace trigger blog_post_index_update after update of title, excerpt, content on blog_post
  for each row when ((old.title, old.excerpt, old.content) is distinct from (new.title, new.excerpt, new.content))
  execute function blog_post_index();
