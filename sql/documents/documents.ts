import { z } from 'zod'
import { noRows, type Query, sql } from '../db.ts'
import { buildListText, type List, mapOrders, type PageValues } from '../reads/lists.ts'
import type { ReadStatement } from '../reads/reader.ts'

/** Queries about documents. The owner is an account id, or null without authentication. */

const IS_OWNED_AND_LIVE =
  'd.id = $1::bigint and d.owner_id is not distinct from $2::int and d.deleted_at is null'

/** One document as public JSON. */
export const readDocument: ReadStatement<[id: number, owner: number | null]> = {
  name: 'document',
  text: `select d.json from document d where ${IS_OWNED_AND_LIVE}`,
}

// A null owner must match null, but no index supports `is not distinct from`.
const OWNER_CONDITION = '(d.owner_id = $1::int or ($1::int is null and d.owner_id is null))'
export const LIVE_DOCUMENTS_CONDITION = `${OWNER_CONDITION} and d.deleted_at is null`
const buildFilterCondition = (row: string): string => `($2::text is null or ${row}.kind = $2)
  and ($4::date is null or ${row}.day >= $4) and ($5::date is null or ${row}.day <= $5)`
const TAGS_CONDITION = '($3::text[] is null or d.tags @> $3)'

/**
 * Selects documents of an owner ($1) by kind ($2), all of the tags ($3), first day ($4) and last day ($5). Null matches
 * any value. Includes superseded documents if $6 is true.
 */
export const LIST_CONDITION = `${LIVE_DOCUMENTS_CONDITION} and ${buildFilterCondition('d')} and ${TAGS_CONDITION} and ($6::boolean or d.superseded_by_id is null)`

export type Filters = [
  owner: number | null,
  kind: string | null,
  tags: readonly string[] | null,
  from: string | null,
  to: string | null,
]
export type ListFilters = [...Filters, withSuperseded: boolean]

/** Sort orders of documents: the list keys of each column that requests can name. */
export const DOCUMENT_ORDERS = {
  received_at: { 'd.id': 'bigint' },
  document_date: { 'd.day': 'date', 'd.id': 'bigint' },
  title: { 'lower(d.title)': 'text', 'd.id': 'bigint' },
  byte_size: { 'd.byte_size': 'bigint', 'd.id': 'bigint' },
  page_count: { 'coalesce(d.page_count, 0)': 'bigint', 'd.id': 'bigint' },
} as const satisfies Record<string, List['order']>

/** A page of an owner's documents. */
export const readDocuments = mapOrders(
  DOCUMENT_ORDERS,
  (column, order, direction): ReadStatement<[...ListFilters, ...page: PageValues]> => ({
    name: `documents_by_${column}_${direction}`,
    text: buildListText('items', {
      table: 'document',
      row: 'd',
      parameters: 6,
      where: LIST_CONDITION,
      order,
      direction,
      item: 'd.json',
    }),
  }),
)

const TAG_COUNT_SOURCE = 'from document_tag_count where owner_id = coalesce($1::int, 0)'

/** Selects the same documents as {@link LIST_CONDITION}, by the rows of their rarest tag. Matches nothing without tags. */
export const LIST_BY_TAG_CONDITION = `t.owner_id = coalesce($1::int, 0) and t.label = (
    select label from unnest($3::text[]) label
    order by (select coalesce(sum(documents), 0) ${TAG_COUNT_SOURCE} and document_tag_count.label = label), label limit 1)
  and ${buildFilterCondition('t')} and ($6::boolean or not t.superseded)
  and (cardinality($3) = 1 or (select d.tags @> $3 from document d where d.id = t.document_id))`

// Total of a list that is filtered by one tag only, from maintained counts; null for other lists.
const TAG_TOTAL_QUERY = `case when cardinality($3) = 1 and $2 is null and $4 is null and $5 is null then (
  select coalesce(sum(case when $6::boolean then documents else documents - superseded end), 0) ${TAG_COUNT_SOURCE} and label = $3[1]) end`

const TAGGED_ORDERS = {
  received_at: { 't.document_id': 'bigint' },
  document_date: { 't.day': 'date', 't.document_id': 'bigint' },
  title: { 't.title': 'text', 't.document_id': 'bigint' },
  byte_size: { 't.byte_size': 'bigint', 't.document_id': 'bigint' },
  page_count: { 't.page_count': 'bigint', 't.document_id': 'bigint' },
} as const satisfies Record<keyof typeof DOCUMENT_ORDERS, List['order']>

/** A page of the documents with some tags. Cursors are compatible with those of `readDocuments`. */
export const readTaggedDocuments = mapOrders(
  TAGGED_ORDERS,
  (column, order, direction): ReadStatement<[...ListFilters, ...page: PageValues]> => ({
    name: `documents_tagged_by_${column}_${direction}`,
    text: buildListText('items', {
      table: 'document_tag',
      row: 't',
      id: ['document_id', 'label'],
      parameters: 6,
      where: LIST_BY_TAG_CONDITION,
      order,
      direction,
      join: 'join document d on d.id = t.document_id',
      item: 'd.json',
      total: TAG_TOTAL_QUERY,
      isTotalPartial: true,
    }),
  }),
)

export const TRASH_ORDER = { 'd.deleted_at': 'timestamptz', 'd.id': 'bigint' } as const

// Text beyond the beginning of a page has vectors of its own.
const HAS_WORDS = (query: string): string => `(d.search @@ ${query} or exists (
    select from document_page p where p.document_id = d.id and p.search @@ ${query}) or exists (
    select from document_page_part p where p.document_id = d.id and p.search @@ ${query}))`

// The terms of a search ($6) match as they do in searches of live documents; '' matches any document. No index serves
// them, because the trash is small and pages of the trash are found by their document.
const TRASH_SEARCH_CONDITION = `($6 = '' or exists (select from search_terms($1::int, $6) where not negated) and not exists (
  select from search_terms($1::int, $6) t
  where case when t.negated then ${HAS_WORDS('t.exact')} else not ${HAS_WORDS('t.wide')} end))`

/** A page of an owner's trash, last deleted first, that matches a search. */
export const readTrash: ReadStatement<[...Filters, search: string, ...page: PageValues]> = {
  name: 'documents_trash',
  text: buildListText('items', {
    table: 'document',
    row: 'd',
    parameters: 6,
    // Matches the condition of the partial index, which excludes rows with `pruned_at`.
    where: `${OWNER_CONDITION} and d.expires_at > now() and d.pruned_at is null and ${buildFilterCondition('d')} and ${TAGS_CONDITION} and ${TRASH_SEARCH_CONDITION}`,
    order: TRASH_ORDER,
    direction: 'desc',
    item: `concat(left(d.json, -1), ',"deleted_at":"', iso(d.deleted_at), '","expires_at":"', iso(d.expires_at), '"}')`,
  }),
}

/** Tags of an owner's documents, including superseded ones. Limited to the 1000 most used, most used first. */
export const readTags: ReadStatement<[owner: number | null]> = {
  name: 'document_tags',
  text: `
    select coalesce(json_agg(json_build_object('label', label, 'count', count) order by count desc, label), '[]')::text from (
      select label, sum(documents) as count ${TAG_COUNT_SOURCE} group by label having sum(documents) > 0 order by count desc, label limit 1000) tags`,
}

/** Changes to a document: null clears a field, and absent fields keep their value. */
export interface DocumentChanges {
  readonly title?: string
  readonly kind?: string
  readonly document_date?: string | null
  readonly note?: string | null
  readonly channel?: string | null
  readonly supersedes_id?: number | null
  readonly protected?: boolean
}

/** Changes a document. No row if the owner does not have it. @throws document.supersedes_* for a bad supersedes_id. */
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

const TaggedDocument = z.object({ id: z.number(), had: z.boolean(), full: z.boolean() })

type Fragment = ReturnType<typeof sql.fragment>

type TagStatement = (
  ids: readonly number[],
  owner: number | null,
  label: string,
) => Query<z.output<typeof TaggedDocument>>

/** Locks documents in id order, so that two statements about several documents never deadlock. */
const updateTags = (
  ids: readonly number[],
  owner: number | null,
  label: string,
  tags: Fragment,
  concerned: Fragment,
): ReturnType<TagStatement> =>
  sql.type(TaggedDocument)`
    with owned as (
      select id, ${label} = any(tags) as had, cardinality(tags) >= 100 as "full" from document
      where id = any(${sql.array(ids, 'int8')}) and owner_id is not distinct from ${owner}::int and deleted_at is null
      order by id for update
    ), changed as (
      update document d set tags = ${tags}, updated_at = now() from owned where d.id = owned.id and ${concerned}
    )
    select id, had, "full" from owned`

/**
 * Adds a label to documents. An existing label keeps its position. Returns a row for each document that the owner has.
 * `full` without `had` means that the document was not changed, because it has the maximum number of labels.
 */
export const addTag: TagStatement = (ids, owner, label) =>
  updateTags(
    ids,
    owner,
    label,
    sql.fragment`d.tags || ${label}::text`,
    sql.fragment`not owned.had and not owned."full"`,
  )

/** Removes a label from documents. Returns a row for each document that the owner has. */
export const removeTag: TagStatement = (ids, owner, label) =>
  updateTags(ids, owner, label, sql.fragment`array_remove(d.tags, ${label})`, sql.fragment`owned.had`)

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
  readonly tags?: readonly string[] | undefined
  /** The encoding of a text; null if its bytes do not prove one. */
  readonly encoding?: string | null
  /** Document id of the mail or PDF that this document was attached to. */
  readonly attachedToId?: number
}

const StoredDocument = z.object({ id: z.number(), created: z.boolean(), media_type: z.string() })

/**
 * Stores a document, unless its owner already has the same bytes. Returns the id of the new or the existing document.
 */
export const insertDocument = (d: NewDocument): Query<z.output<typeof StoredDocument>> =>
  sql.type(StoredDocument)`
    with inserted as (
      insert into document (owner_id, title, kind, media_type, byte_size, sha256, document_date, source, channel, note,
        encoding, tags, attached_to_id)
      values (${d.ownerId}, ${d.title}, ${d.kind ?? 'other'}, ${d.mediaType}, ${d.byteSize}, ${sql.binary(d.sha256)},
        ${d.documentDate ?? null}::date, ${d.source ?? 'upload'}, ${d.channel ?? null}, ${d.note ?? null},
        ${d.encoding ?? null}, ${sql.array(d.tags ?? [], 'text')}, ${d.attachedToId ?? null})
      on conflict (owner_id, sha256) where deleted_at is null do nothing
      returning id, media_type
    )
    select id, true as created, media_type from inserted
    union all
    select id, false, media_type from document
    where (owner_id = ${d.ownerId}::int or (${d.ownerId}::int is null and owner_id is null))
      and sha256 = ${sql.binary(d.sha256)} and deleted_at is null
      and not exists (select from inserted)`

/** Corrects the type of a document, after an upload under a better name or a new detection. */
export const setMediaType = (id: number, mediaType: string): Query<unknown> =>
  sql.type(noRows)`update document set media_type = ${mediaType} where id = ${id} and deleted_at is null`

// Deletion. These statements use `clock_timestamp()`, because `now()` is the start of the transaction. By `now()`, a
// document that was permanently deleted during the transaction would still be in the trash.

/**
 * Moves documents to the trash for `trashDays`. Null deletes them permanently, also from the trash. Returns a row for
 * each document found. Documents that are `protected` were not deleted.
 */
export const deleteDocuments = (
  ids: readonly number[],
  owner: number | null,
  trashDays: number | null,
): Query<{ id: number; protected: boolean }> =>
  sql.type(z.object({ id: z.number(), protected: z.boolean() }))`
    with owned as (
      select id, protected from document
      where id = any(${sql.array(ids, 'int8')}) and owner_id is not distinct from ${owner}::int
        and (deleted_at is null or (${trashDays === null}::boolean and expires_at > clock_timestamp()))
      order by id for update
    ), deleted as (
      update document d set deleted_at = coalesce(d.deleted_at, now()),
        expires_at = now() + make_interval(days => ${trashDays ?? 0}::int)
      from owned where d.id = owned.id and not owned.protected
    )
    select id, protected from owned`

/** Filters document ids to those that the owner has already deleted. */
export const findDeletedDocuments = (ids: readonly number[], owner: number | null): Query<{ id: number }> =>
  sql.type(z.object({ id: z.number() }))`
    select id from document
    where id = any(${sql.array(ids, 'int8')}) and owner_id is not distinct from ${owner}::int and deleted_at is not null`

/** Reads the digest of a document in the trash. No row if the document is not there. */
export const findTrashedDigest = (id: number, owner: number | null): Query<{ sha256: Uint8Array }> =>
  sql.type(z.object({ sha256: z.instanceof(Uint8Array) }))`
    select sha256 from document
    where id = ${id} and owner_id is not distinct from ${owner}::int and expires_at > clock_timestamp()`

/**
 * Restores a document from the trash. No row if it is not there. The caller must hold the lock of its digest.
 * @throws document.stored_again if the owner has stored the same bytes again.
 */
export const restoreDocument = (id: number, owner: number | null): Query<{ id: number }> =>
  sql.type(z.object({ id: z.number() }))`
    update document set deleted_at = null, expires_at = null
    where id = ${id} and owner_id is not distinct from ${owner}::int and expires_at > clock_timestamp()
    returning id`
