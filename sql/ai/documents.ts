import { z } from 'zod'
import { type Query, sql } from '../db.ts'

/** Documents that questions refer to. */

const ChatDocument = z.object({
  id: z.number(),
  title: z.string(),
  media_type: z.string(),
  /** The first characters of the text of the pages, as Markdown where a page has it. */
  text: z.string(),
  /** Length of the whole text, in characters. */
  characters: z.number(),
})
/** A document for a model. */
export type ChatDocument = z.output<typeof ChatDocument>

/** Reads documents of an owner, with at most `limit` characters each. Omits documents that do not exist. */
export const readChatDocuments = (
  ids: readonly number[],
  owner: number | null,
  limit: number,
): Query<ChatDocument> =>
  sql.prepared('ai_documents', ChatDocument)`
    select d.id, d.title, d.media_type, coalesce(pages.text, '') as text, coalesce(pages.characters, 0)::int as characters
    from document d left join lateral (
      select left(string_agg(page.text, E'\\n\\n' order by page.page_number) filter (where page.before < ${limit}::int), ${limit}::int) as text,
        max(page.before + length(page.text)) as characters
      from (
        select p.page_number, coalesce(p.markdown, p.text) as text,
          coalesce(sum(length(coalesce(p.markdown, p.text)) + 2) over (
            order by p.page_number rows between unbounded preceding and 1 preceding), 0) as before
        from document_page p where p.document_id = d.id and p.status = 'read') page
    ) pages on true
    where d.id = any(${sql.array(ids, 'int8')}) and d.owner_id is not distinct from ${owner}::int and d.deleted_at is null`

const AttachedDocument = z.object({ id: z.number(), is_ready: z.boolean() })

/**
 * Finds documents of an owner for a question. `is_ready` is true for a picture, and for a document with a page that was
 * read. Omits documents that do not exist.
 */
export const findAttachedDocuments = (
  ids: readonly number[],
  owner: number | null,
): Query<z.output<typeof AttachedDocument>> =>
  sql.prepared('ai_attached_documents', AttachedDocument)`
    select d.id, d.media_type like 'image/%'
      or exists (select from document_page p where p.document_id = d.id and p.status = 'read') as is_ready
    from document d
    where d.id = any(${sql.array(ids, 'int8')}) and d.owner_id is not distinct from ${owner}::int and d.deleted_at is null`
