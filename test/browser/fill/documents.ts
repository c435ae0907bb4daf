import { createHash } from 'node:crypto'
import type { Fill } from './fill.ts'

const COUNT = 10_000
const BIG_PAGES = 2000
// Documents with tags, dates and notes, which are the newest. Their search vectors and tags take most of the time.
const DETAILED = 600
const LONG = 'Donaudampfschifffahrtselektrizitätenhauptbetriebswerkbauunterbeamtengesellschaft'

/**
 * Inserts 10,000 documents, as many in the trash, and one with 2,000 pages. Among them are long titles, many tags, all
 * kinds of files, unread pages, superseded, protected and attached documents.
 */
export const fill: Fill = async ({ query, accountId }) => {
  const insert = (isDeleted: boolean) =>
    query(
      `insert into document (owner_id, title, kind, media_type, byte_size, sha256, page_count, document_date, received_at, note, channel,
         protected, tags, deleted_at, expires_at)
       select $1, case n % 50 when 0 then $2 || ' ' || n when 1 then repeat($2, 3) else (array['Invoice', 'Lease', 'Minutes', 'Letter', 'Report'])[n % 5 + 1] || ' ' || n || '.pdf' end,
         (array['invoice', 'lease', 'minutes', 'letter', 'other'])[n % 5 + 1],
         (array['application/pdf', 'image/png', 'message/rfc822', 'text/plain', 'application/vnd.oasis.opendocument.text', 'application/x-unusual'])[n % 6 + 1],
         n::bigint * n * 7, sha256(convert_to($3::text || n, 'UTF8')), nullif(n % 9, 0), case when n % 3 = 0 and n <= ${DETAILED} then date '2026-01-01' + n % 300 end,
         now() - n * interval '3 min', case when n > ${DETAILED} then null when n % 7 = 0 then repeat('A long note. ', 80) when n % 7 = 1 then '' end, case when n % 4 = 0 then 'post' end,
         n % 97 = 0,
         case when n % 11 = 0 or n > ${DETAILED} then '{}' when n % 11 = 1 then array(select 'tag ' || i from generate_series(1, 12) i)
           when n % 11 = 2 then array[left($2, 64)]
           else array['finance', 'year ' || 2015 + n % 11] end,
         case when $4 then now() - n * interval '1 min' end, case when $4 then now() + interval '20 days' end
       from generate_series(1, ${COUNT}) n order by n desc`,
      [accountId, LONG, isDeleted ? 'trash' : 'document', isDeleted],
    )
  await Promise.all([insert(false), insert(true)])
  const sha256 = createHash('sha256').update('big').digest()
  const [big] = await query(
    `insert into document (owner_id, title, kind, media_type, byte_size, sha256, page_count, tags, note)
     values ($1, $2, 'report', 'application/pdf', 50000000, $3, ${BIG_PAGES}, array['finance'], 'All pages of the year') returning id`,
    [accountId, `${LONG} ${LONG}.pdf`, sha256],
  )
  const id = Number(big!.id)
  await query(
    `insert into document_page (document_id, page_number, owner_id, search, status, method, model, detail, text, job_id)
     select $1, n, $3, given.search, case when n % 40 = 0 then 'unread' else 'read' end,
       case when n % 40 = 0 then 'none' when n % 5 = 0 then 'vision' else 'text_layer' end,
       case when n % 40 <> 0 and n % 10 = 0 then 'a-vision-model' when n % 40 <> 0 and n % 5 = 0 then 'tesseract/eng' end,
       case when n % 40 = 0 then 'OCR confidence is too low (12 of 100): the image is poor' end,
       case when n % 40 = 0 then '' when n % 7 = 0 then repeat($2, 20) else repeat('The harbour office answered on page ' || n || '. ', 30) end,
       gen_random_uuid()
     from generate_series(1, ${BIG_PAGES}) n, (select search_vector('The harbour office answered') as search) given`,
    [id, LONG, accountId],
  )
  // Chains of versions, and attachments of one email.
  await query(
    `update document d set supersedes_id = older.id
     from (select id, lag(id) over (order by id) as older from document where owner_id = $1 and deleted_at is null and page_count = 5) pair
     join document older on older.id = pair.older where d.id = pair.id and d.id % 20 = 0`,
    [accountId],
  )
  await query(
    `update document set attached_to_id = $2 where owner_id = $1 and deleted_at is null and page_count = 7 and id % 20 = 0`,
    [accountId, id],
  )
  return { '/documents/:id': `/documents/${id}` }
}
