import { z } from 'zod'
import { type Query, sql } from './db.ts'
import { listText, type PageValues } from './lists.ts'
import type { ReadStatement } from './reader.ts'

/** Documents. An owner is an account id, or null where there is no authentication. */

const OWNED = 'd.id = $1::bigint and d.owner_id is not distinct from $2::int and d.deleted_at is null'

/** One document as clients see it. */
export const readDocument: ReadStatement<[id: number, owner: number | null]> = {
  name: 'document',
  text: `select d.json from document d where ${OWNED}`,
}

// No index serves `is not distinct from`. Null is an owner like any other.
export const OF_OWNER =
  '(d.owner_id = $1::int or ($1::int is null and d.owner_id is null)) and d.deleted_at is null'

/** The documents of an owner ($1) with a kind ($2) and a tag ($3), or any (null); with superseded ones if $4. */
export const LISTED = `${OF_OWNER} and ($2::text is null or d.kind = $2)
  and ($3::text is null or coalesce(d.owner_id, 0) = coalesce($1::int, 0) and d.tags @> array[$3::text])
  and ($4::boolean or d.superseded_by_id is null)`

export type Listed = [owner: number | null, kind: string | null, tag: string | null, withSuperseded: boolean]

// How many have a tag, of whatever kind; null for other lists. An index on tags would look at each of them.
const TAG_TOTAL = `case when $3::text is not null and $2::text is null then (
  select coalesce(sum(case when $4::boolean then documents else documents - superseded end), 0) from document_tag_count
  where owner_id = coalesce($1::int, 0) and label = $3) end`

export const DOCUMENT_ORDER = { 'd.id': 'bigint' } as const

/** A page of the list, newest first. */
export const readDocuments: ReadStatement<[...Listed, ...page: PageValues]> = {
  name: 'documents',
  text: listText('items', {
    table: 'document',
    row: 'd',
    parameters: 4,
    where: LISTED,
    order: DOCUMENT_ORDER,
    direction: 'desc',
    item: 'd.json',
    total: TAG_TOTAL,
    isTotalPartial: true,
  }),
}

/** The tags of an owner's documents, including superseded ones, most used first. */
export const readTags: ReadStatement<[owner: number | null]> = {
  name: 'document_tags',
  text: `
    select coalesce(json_agg(json_build_object('label', label, 'count', count) order by count desc, label), '[]')::text from (
      select label, sum(documents) as count from document_tag_count where owner_id = coalesce($1::int, 0)
      group by label having sum(documents) > 0 order by count desc, label limit 1000) tags`,
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
      supersedes_id = case when c ? 'supersedes_id' then (c ->> 'supersedes_id')::bigint else d.supersedes_id end,
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
  readonly kind?: string | undefined
  readonly mediaType: string
  readonly byteSize: number
  readonly sha256: Buffer
  readonly documentDate?: string | undefined
  readonly source?: string | undefined
  readonly channel?: string | undefined
  readonly note?: string | undefined
  /** The mail that it came with. */
  readonly attachedToId?: number
}

const Stored = z.object({ id: z.number(), created: z.boolean() })

/** Stores a document unless its owner has one with the same bytes; returns the id of either. */
export const insertDocument = (d: NewDocument): Query<z.output<typeof Stored>> =>
  sql.type(Stored)`
    with inserted as (
      insert into document (owner_id, title, kind, media_type, byte_size, sha256, document_date, source, channel, note,
        attached_to_id)
      values (${d.ownerId}, ${d.title}, ${d.kind ?? 'other'}, ${d.mediaType}, ${d.byteSize}, ${sql.binary(d.sha256)},
        ${d.documentDate ?? null}::date, ${d.source ?? 'upload'}, ${d.channel ?? null}, ${d.note ?? null},
        ${d.attachedToId ?? null})
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
