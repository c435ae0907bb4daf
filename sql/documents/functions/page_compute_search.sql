-- Computes the search vector and the owner of a page that is written without them, and stores the words of all its parts.
create or replace function page_compute_search() returns trigger language plpgsql as $$
begin
  new.search := search_vector(page_part(new.text, 0));
  new.owner_id := (select owner_id from document where id = new.document_id);
  perform search_words_store(array_agg(new.owner_id), array_agg(search_vector(page_part(new.text, n))))
  from generate_series(0, page_last_part(new.text)) n;
  return new;
end $$;

create or replace trigger page_compute_search_insert before insert on document_page
  for each row when (new.search is null) execute function page_compute_search();

create or replace trigger page_compute_search_update before update of text on document_page
  for each row when (new.search is not distinct from old.search and new.text <> old.text) execute function page_compute_search();
