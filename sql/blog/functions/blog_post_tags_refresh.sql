create or replace function blog_post_tags_refresh() returns trigger language plpgsql as $$
begin
  perform blog_tags_rebuild(array(select distinct post_id from changed));
  return null;
end $$;

create or replace trigger blog_post_tag_added after insert on blog_post_tag referencing new table as changed
  for each statement execute function blog_post_tags_refresh();

create or replace trigger blog_post_tag_removed after delete on blog_post_tag referencing old table as changed
  for each statement execute function blog_post_tags_refresh();
