-- Deletes unused words. A pass starts once some word was last seen `keep_days` ago, and marks the words of all texts.
-- Afterwards, a word last seen `keep_days` before the start of the pass is in no text. Each call processes `batch_size`
-- texts. Once fewer are left, it also deletes up to `batch_size` words.
--
-- A transaction that writes a text marks its words, and ends within the 3 days for which `search_words_store` relies on
-- a mark. So no deleted word is in a text that is being written. Only extractions write pages first and store their
-- words at the end, which restores words deleted meanwhile.
create or replace function search_words_sweep(keep_days integer, batch_size integer, out looked integer, out gone integer)
  language plpgsql
  set enable_seqscan = off
as $$
declare
  posts bigint[];
  kept constant interval := make_interval(days => greatest(keep_days, 7));
  pass search_pass;
begin
  insert into search_pass select where exists (select from search_word where seen_at < now() - kept) on conflict do nothing;
  select * into pass from search_pass for update;
  looked := 0;
  gone := 0;
  if pass.started_at is null then return; end if;
  with text as materialized (
    select * from (
      (select d.id as document_id, 0 as page_number, d.owner_id, case when d.deleted_at is null then d.search end as search from document d
        where d.id > pass.document_id order by d.id limit batch_size)
      union all
      (select p.document_id, p.page_number, p.owner_id, p.search from document_page p
        where (p.document_id, p.page_number) > (pass.document_id, pass.page_number)
        order by p.document_id, p.page_number limit batch_size)
    ) texts order by document_id, page_number limit batch_size
  ), marked as materialized (
    select search_words_store(array_agg(owner_id), array_agg(search)) from (
      select owner_id, search from text where search is not null
      union all
      select p.owner_id, p.search from text cross join lateral (
        select * from document_page_part part where part.document_id = text.document_id and part.page_number = text.page_number offset 0) p) every
  )
  select count(*), (array_agg(document_id order by document_id desc, page_number desc))[1],
    (array_agg(page_number order by document_id desc, page_number desc))[1]
  into looked, pass.document_id, pass.page_number from text, marked;
  if looked > 0 then
    update search_pass set document_id = pass.document_id, page_number = pass.page_number;
  end if;
  if looked = batch_size then return; end if;
  posts := array(select id from blog_post where id > pass.post_id order by id limit batch_size - looked);
  if cardinality(posts) > 0 then
    perform search_words_store(array_agg(-1), array_agg(search)) from blog_post_part where post_id = any(posts);
    update search_pass set post_id = posts[cardinality(posts)];
    looked := looked + cardinality(posts);
  end if;
  if looked = batch_size then return; end if;
  -- Rechecks `seen_at`, because a concurrent transaction may have marked the row meanwhile.
  delete from search_word where seen_at < pass.started_at - kept and ctid = any(array(
    select ctid from search_word where seen_at < pass.started_at - kept order by seen_at limit batch_size for update));
  get diagnostics gone = row_count;
  looked := looked + gone;
  if gone < batch_size then delete from search_pass; end if;
end $$;
