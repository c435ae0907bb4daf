-- Counts the titles, pages and posts that match a query for an owner's words, up to 50 of each.
create or replace function search_count_hits(words tsquery) returns bigint language sql stable as $$
  select count(*) from (
    (select from document d where owned_vector(d.owner_id, d.search) @@ words and d.deleted_at is null limit 50)
    union all
    (select from document_page p where owned_vector(p.owner_id, p.search) @@ words limit 50)
    union all
    (select from document_page_part p where owned_vector(p.owner_id, p.search) @@ words limit 50)
    union all
    (select from blog_post_part p where owned_vector(-1, p.search) @@ words limit 50)) found
$$;
