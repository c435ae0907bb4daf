create or replace function blog_tags_changed() returns trigger language plpgsql as $$
begin
  perform blog_tags_shown(array(select distinct post_id from blog_post_tag where tag_id in (select id from changed)));
  return null;
end $$;

create or replace trigger blog_tag_changed after update on blog_tag referencing new table as changed
  for each statement execute function blog_tags_changed();
