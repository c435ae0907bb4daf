import { z } from 'zod'
import { fail } from '../../sql/errors.ts'
import { PAGE_HEADERS, sendFile } from '../files.ts'
import { type AnyRoute, area, route } from '../pipeline/route.ts'

const FOLDER = new URL('../pages/', import.meta.url)

// Scripts and styles come from here only, and nothing may frame these pages.
const HEADERS = [
  [
    'content-security-policy',
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'",
  ],
  ...PAGE_HEADERS,
] as const

// Allow-lists, not folders.
const PARTS = new Set(['page.css', 'monitor.css', 'mark.svg', 'account.js'])
const MONITOR_PARTS = new Set([
  'main.js',
  'api.js',
  'dom.js',
  'format.js',
  'chart.js',
  'login.js',
  'overview.js',
  'tables.js',
  'job.js',
  'job-attempts.js',
  'job-details.js',
  'job-events.js',
  'job-log.js',
  'documents.js',
  'document.js',
  'others.js',
  'questions.js',
  'usage.js',
  'quotas.js',
  'queues.js',
  'failures.js',
  'bulk.js',
  'jobs.js',
  'spending.js',
  'schedules.js',
])

/** A page that is a file of `edge/pages`. */
function page(path: string, summary: string, file: string, params?: z.ZodType): AnyRoute {
  return route({
    method: 'get',
    path,
    summary,
    ...(params === undefined ? {} : { params }),
    produces: 'text/html',
    alsoAnswers: NOT_MODIFIED,
    raw: (input) => sendFile(input, new URL(file, FOLDER), HEADERS),
  })
}

/** Assets of pages, by name; `produces` may be a range of types. */
function parts(path: string, folder: string, names: ReadonlySet<string>, produces: string): AnyRoute {
  return route({
    method: 'get',
    path,
    summary: 'Get an asset of a page',
    params: z.object({ file: z.string() }),
    produces,
    alsoAnswers: NOT_MODIFIED,
    errors: ['route.missing'],
    raw: async (input) => {
      if (!names.has(input.params.file)) throw fail('route.missing')
      return sendFile(input, new URL(`${folder}${input.params.file}`, FOLDER), HEADERS)
    },
  })
}

const NOT_MODIFIED = { 304: 'The client already has this version' }

/** Pages for people: the home page, the monitor, and those that emails and the payment provider link to. */
export const pages = area('pages', '', { auth: 'public', takesAnyQuery: true, about: 'HTML pages.' }, [
  page('/', 'Show the home page', 'home.html'),
  page('/monitor', 'Show the monitor: queues, jobs and workers, live', 'monitor.html'),
  page('/monitor/jobs', 'Show jobs by what they are like, and deal with many at once', 'monitor.html'),
  page(
    '/monitor/jobs/:job_id',
    'Show a job with its events, live',
    'monitor.html',
    z.object({ job_id: z.string() }),
  ),
  page('/monitor/schedules', 'Show what runs on a schedule: its last and next run, live', 'monitor.html'),
  page('/monitor/documents', 'Show the documents of the account', 'monitor.html'),
  page(
    '/monitor/documents/:id',
    'Show a document: the images of its pages beside their text, as they are read',
    'monitor.html',
    z.object({ id: z.string() }),
  ),
  page(
    '/monitor/usage',
    'Show the quotas of the account; for admins also what tables take and how they grow, and what models cost',
    'monitor.html',
  ),
  page('/setup', 'Show the page that makes the first admin, which a start prints a link to', 'account.html'),
  page('/verify-email', 'Show the page that a verification email links to', 'account.html'),
  page('/email-change', 'Show the page that the emails of a change of address link to', 'account.html'),
  page('/email-change/refuse', 'Show the page that refuses a change of address', 'account.html'),
  page('/password-reset', 'Show the page that a password reset email links to', 'account.html'),
  page('/accept-invite', 'Show the page that an invite links to', 'account.html'),
  page('/payment/success', 'Show the page that follows a paid checkout', 'payment-success.html'),
  page('/payment/cancel', 'Show the page that follows a cancelled checkout', 'payment-cancel.html'),
  parts('/pages/:file', '', PARTS, '*/*'),
  parts('/pages/monitor/:file', 'monitor/', MONITOR_PARTS, 'text/javascript'),
])
