-- Bytes may live outside of PostgreSQL, and go when no document needs them any more.

-- The row says where its bytes are, in the words of BLOB_STORE, so that a deployment that changes its store still finds
-- what it has. The key is the bytes' name there: random, so that two uploads of the same content never share a file,
-- and one that goes takes nothing of one that comes.
alter table blob
  add column store text not null default 'postgres',
  add column key uuid not null default gen_random_uuid(),
  -- The multipart upload of an object store that is under way: its parts are paid for until somebody ends it.
  add column upload_id text,
  -- Its bytes are being removed, and no document may be made of them.
  add column doomed boolean not null default false,
  add constraint blob_store_check check (store = 'postgres' or store like 'file:_%' or store like 's3://_%'),
  add constraint blob_doomed_check check (not doomed or sha256 is null);

-- The row of a deleted document stays, since others may supersede it; what was made of its bytes goes, once.
alter table document add column collected_at timestamptz;
create index document_deleted_idx on document (deleted_at) where deleted_at is not null and collected_at is null;
-- Which documents are of these bytes, whoever's they are.
create index document_sha256_idx on document (sha256);
