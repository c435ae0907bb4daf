import { z } from 'zod'
import { type Query, sql } from './db.ts'
import { counted, MOST_COUNTED } from './lists.ts'
import type { ReadStatement } from './reader.ts'

/**
 * Documents and their pages. An owner is an account id, or null where there is no authentication. No index
 * serves `is not distinct from`: where the owner alone finds the rows, the two cases are spelled out.
 */

// The row holds its own JSON, except for what depends on another row.
const DOCUMENT_JSON = `d.fields || ',"superseded_by_id":'
  || coalesce((select s.id from document s where s.supersedes_id = d.id and s.deleted_at is null)::text, 'null') || '}'`

const OWNED = 'd.id = $1::int and d.owner_id is not distinct from $2::int and d.deleted_at is null'

/** One document as clients see it. */
export const readDocument: ReadStatement<[id: number, owner: number | null]> = {
  name: 'document',
  text: `select ${DOCUMENT_JSON} from document d where ${OWNED}`,
}

// Uses the indexes on the owner; null is an owner like any other.
const OF_OWNER = '(d.owner_id = $1::int or ($1::int is null and d.owner_id is null)) and d.deleted_at is null'

const LISTED = `($2::text is null or d.kind = $2) and ($3::text is null or d.tags @> array[$3::text])
  and ($4::boolean or not exists (select from document s where s.supersedes_id = d.id and s.deleted_at is null))`

// The JSON of a row is made once it is known to be on the page.
const page = (order: string): string => `
  select concat('{"items":[', (select string_agg(${DOCUMENT_JSON}, ',' order by place) from (
      select d.*, row_number() over (order by ${order}) as place
      from found d order by ${order} offset $5::int limit $6::int) d),
    '],"total":', least(n, ${MOST_COUNTED}), ',"total_is_exact":', (n <= ${MOST_COUNTED})::text,
    ',"page":', $7::int, ',"page_size":', $6::int, '}') from ${counted('found')} counted`

type Listed = [
  owner: number | null,
  kind: string | null,
  tag: string | null,
  withSuperseded: boolean,
  offset: number,
  pageSize: number,
  page: number,
]

/** A page of the list, newest first, with a kind and a tag, or any (null). */
export const readDocuments: ReadStatement<Listed> = {
  name: 'documents',
  text: `
    with found as not materialized (select d.* from document d where ${OF_OWNER} and ${LISTED})
    ${page('d.id desc')}`,
}

/**
 * The same for the documents that match a search, best first. Every term occurs somewhere in the document's title,
 * note, tags or pages; the whole word counts most, then its beginning or part, and the title more than the text.
 */
export const searchDocuments: ReadStatement<[...Listed, search: string]> = {
  name: 'documents_search',
  text: `
    with term as materialized (select * from search_terms($8)),
    hit as (
      select t.n, d.id, 4 * ts_rank(d.search, t.exact) + ts_rank(d.search, t.wide) as rank
      from term t join document d on d.search @@ t.wide where not t.negated and ${OF_OWNER}
      union all
      select t.n, d.id, 4 * ts_rank(p.search, t.exact) + ts_rank(p.search, t.wide)
      from term t join document_page p on p.search @@ t.wide join document d on d.id = p.document_id
      where not t.negated and ${OF_OWNER}
    ), best as (
      select n, id, max(rank) as rank from hit group by n, id
    ), scored as (
      select id, sum(rank) as rank from best group by id
      having count(*) = (select count(*) from term where not negated)
    ), found as materialized (
      select d.*, scored.rank from scored join document d using (id)
      where ${LISTED} and not exists (
        select from term t where t.negated and (d.search @@ t.exact
          or exists (select from document_page p where p.document_id = d.id and p.search @@ t.exact)))
    )
    ${page('d.rank desc, d.id desc')}`,
}

/** The tags of an owner's documents, including superseded ones, most used first. */
export const readTags: ReadStatement<[owner: number | null]> = {
  name: 'document_tags',
  text: `
    select coalesce(json_agg(json_build_object('label', label, 'count', count) order by count desc, label), '[]')::text from (
      select label, count(*) as count from document d, unnest(d.tags) label
      where ${OF_OWNER} group by label order by count desc, label limit 1000) tags`,
}

/** Changes to a document; null clears, absent keeps. */
export interface DocumentChanges {
  readonly title?: string
  readonly kind?: string
  readonly document_date?: string | null
  readonly note?: string | null
  readonly channel?: string | null
  readonly supersedes_id?: number | null
  readonly protected?: boolean
}

/** Changes a document; no row when its owner has no such one. @throws document.supersedes_* for a bad supersedes_id. */
export const updateDocument = (
  id: number,
  owner: number | null,
  changes: DocumentChanges,
): Query<{ id: number }> =>
  sql.type(z.object({ id: z.number() }))`
    update document d set
      title = coalesce(c ->> 'title', d.title), kind = coalesce(c ->> 'kind', d.kind),
      document_date = case when c ? 'document_date' then (c ->> 'document_date')::date else d.document_date end,
      note = case when c ? 'note' then c ->> 'note' else d.note end,
      channel = case when c ? 'channel' then c ->> 'channel' else d.channel end,
      supersedes_id = case when c ? 'supersedes_id' then (c ->> 'supersedes_id')::int else d.supersedes_id end,
      protected = coalesce((c ->> 'protected')::boolean, d.protected), updated_at = now()
    from (select ${JSON.stringify(changes)}::jsonb as c) given
    where d.id = ${id} and d.owner_id is not distinct from ${owner}::int and d.deleted_at is null
    returning d.id`

/** Adds a label; an existing one keeps its place. No row when the owner has no such document. */
export const addTag = (id: number, owner: number | null, label: string): Query<{ id: number }> =>
  sql.type(z.object({ id: z.number() }))`
    update document set tags = case when ${label} = any(tags) then tags else tags || ${label}::text end,
      updated_at = case when ${label} = any(tags) then updated_at else now() end
    where id = ${id} and owner_id is not distinct from ${owner}::int and deleted_at is null
    returning id`

/** Removes a label; `removed` is false when it was not there, no row when the owner has no such document. */
export const removeTag = (id: number, owner: number | null, label: string): Query<{ removed: boolean }> =>
  sql.type(z.object({ removed: z.boolean() }))`
    with owned as (
      select id, ${label} = any(tags) as has from document
      where id = ${id} and owner_id is not distinct from ${owner}::int and deleted_at is null for update
    ), changed as (
      update document d set tags = array_remove(tags, ${label}), updated_at = now() from owned where d.id = owned.id and owned.has
    )
    select has as removed from owned`

// Uploading.

export interface NewDocument {
  readonly ownerId: number | null
  readonly title: string
  readonly kind: string | undefined
  readonly mediaType: string
  readonly byteSize: number
  readonly sha256: Buffer
  readonly documentDate: string | undefined
  readonly source: string | undefined
  readonly channel: string | undefined
  readonly note: string | undefined
}

const Stored = z.object({ id: z.number(), created: z.boolean() })

/** Stores a document unless its owner has one with the same bytes; returns the id of either. */
export const insertDocument = (d: NewDocument): Query<z.output<typeof Stored>> =>
  sql.type(Stored)`
    with inserted as (
      insert into document (owner_id, title, kind, media_type, byte_size, sha256, document_date, source, channel, note)
      values (${d.ownerId}, ${d.title}, ${d.kind ?? 'other'}, ${d.mediaType}, ${d.byteSize}, ${sql.binary(d.sha256)},
        ${d.documentDate ?? null}::date, ${d.source ?? 'upload'}, ${d.channel ?? null}, ${d.note ?? null})
      on conflict (owner_id, sha256) where deleted_at is null do nothing
      returning id
    )
    select id, true as created from inserted
    union all
    select id, false from document
    where (owner_id = ${d.ownerId}::int or (${d.ownerId}::int is null and owner_id is null))
      and sha256 = ${sql.binary(d.sha256)} and deleted_at is null
      and not exists (select from inserted)`

/** Soft-deletes; `protected` true: it was refused; no row: there is no such document. */
export const deleteDocument = (id: number, owner: number | null): Query<{ protected: boolean }> =>
  sql.type(z.object({ protected: z.boolean() }))`
    with owned as (
      select id, protected from document
      where id = ${id} and owner_id is not distinct from ${owner}::int and deleted_at is null for update
    ), deleted as (
      update document set deleted_at = now() from owned where document.id = owned.id and not owned.protected
    )
    select protected from owned`
