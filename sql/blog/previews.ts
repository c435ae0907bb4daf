import { z } from 'zod'
import { type Query, sql } from '../db.ts'
import type { ReadStatement } from '../reads/reader.ts'
import { deleteExpiredRows } from '../retention/expired.ts'
import { POST_JSON } from './posts.ts'

/** Links that show a post to people without an account. */

/** Maximum number of links of a post; another one replaces the oldest. */
export const MAX_PREVIEWS = 100

const Preview = z.object({ id: z.number(), expires_at: z.string() })

/** Adds a link to a post. No row if the post does not exist. */
export const insertPreview = (post: number, seconds: number): Query<z.output<typeof Preview>> =>
  sql.type(Preview)`
    with post as (
      select id from blog_post where id = ${post} for key share
    ), excess as (
      delete from blog_preview where id in (
        select id from blog_preview where post_id = ${post} order by id desc offset ${MAX_PREVIEWS - 1})
    )
    insert into blog_preview (post_id, expires_at) select id, now() + make_interval(secs => ${seconds}) from post
    returning id, iso(expires_at) as expires_at`

/** Deletes the links of a post. No row if the post does not exist. */
export const deletePreviews = (post: number): Query<{ id: number }> =>
  sql.type(z.object({ id: z.number() }))`
    with gone as (delete from blog_preview where post_id = ${post})
    select id from blog_post where id = ${post}`

/** The current version of the post of a link, whatever its status. */
export const readPreviewedPost: ReadStatement<[preview: number]> = {
  name: 'blog_previewed_post',
  text: `select ${POST_JSON.sql} from blog_preview v join blog_post p on p.id = v.post_id
    where v.id = $1::bigint and v.expires_at > now()`,
}

/** Deletes expired links and returns their number. */
export const deleteExpiredPreviews = (batch: number): Query<{ count: number }> =>
  deleteExpiredRows(sql.fragment`blog_preview`, sql.fragment`id`, batch)
