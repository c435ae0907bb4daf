import { z } from 'zod'
import { type Query, sql } from '../db.ts'

/** Publishes, schedules and archives posts, and announces those that have become public. */

const Outcome = z.object({ outcome: z.enum(['missing', 'fixed', 'scheduled', 'public']) })

/** Publishes a post at a time, or now without one. See `blog_publish` for the outcomes. */
export const publishPost = (id: number, at: string | null): Query<z.output<typeof Outcome>> =>
  sql.type(Outcome)`select blog_publish(${id}, ${at}::timestamptz) as outcome`

/** Archives a post. The result is false if it does not exist. */
export const archivePost = (id: number): Query<{ found: boolean }> =>
  sql.type(z.object({ found: z.boolean() }))`select blog_archive(${id}) as found`

const Count = z.object({ count: z.number() })

const toIds = (ids: readonly number[]) => sql.array([...ids], 'int8')

/** Announces those of these posts that are public. Call it before a change that may hide them. */
export const announcePosts = (ids: readonly number[]): Query<{ count: number }> =>
  sql.type(Count)`select blog_announce(${toIds(ids)}) as count`

/** Announces up to `max` posts whose time has come, the oldest first. The count omits those that others announce meanwhile. */
export const announceDuePosts = (max: number): Query<{ count: number }> =>
  sql.type(Count)`
    select blog_announce(array(
      select id from blog_post where status = 'published' and announced_at is null and published_at <= now()
      order by published_at limit ${max})) as count`

const Scheduled = z.object({ at: z.string(), ms: z.number() })

/**
 * Returns the first time at which a post without an announcement becomes public, and the milliseconds until then. They
 * are 0 for a post that is public already. No row without such a post.
 */
export const readNextPublication = (): Query<z.output<typeof Scheduled>> =>
  sql.prepared('blog_next_publication', Scheduled)`
    select iso(published_at) as at, greatest(0, extract(epoch from published_at - now())::float8 * 1000) as ms
    from blog_post where status = 'published' and announced_at is null
    order by published_at limit 1`
