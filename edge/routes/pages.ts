import { z } from 'zod'
import { fail } from '../../sql/errors.ts'
import { sendFile } from '../files.ts'
import { type AnyRoute, area, route } from '../pipeline/route.ts'

const FOLDER = new URL('../pages/', import.meta.url)

// Scripts and styles come from here only; nothing frames these pages, and their address tells nobody anything.
const HEADERS = [
  [
    'content-security-policy',
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'",
  ],
  ['referrer-policy', 'no-referrer'],
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
  'documents.js',
  'document.js',
  'others.js',
])

/** A page as a file of `edge/pages`. */
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

/** Parts of pages, by their names; `produces` may be a range of types. */
function parts(path: string, folder: string, names: ReadonlySet<string>, produces: string): AnyRoute {
  return route({
    method: 'get',
    path,
    summary: 'A part of a page',
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

const NOT_MODIFIED = { 304: 'The client has this version' }

/** The pages for people: what this is, the monitor, and those that mails and the payment provider lead to. */
export const pages = area('pages', '', { auth: 'public' }, [
  page('/', 'What this is, and where to go from here', 'home.html'),
  page('/monitor', 'Queues, jobs and workers, live', 'monitor.html'),
  page(
    '/monitor/jobs/:job_id',
    'One job with its events, live',
    'monitor.html',
    z.object({ job_id: z.string() }),
  ),
  page('/monitor/documents', 'The documents of the account', 'monitor.html'),
  page(
    '/monitor/documents/:id',
    'One document: the pictures of its pages beside their text, as they are read',
    'monitor.html',
    z.object({ id: z.string() }),
  ),
  page('/verify-email', 'Where the link of a verification mail leads', 'account.html'),
  page('/password-reset', 'Where the link of a reset mail leads', 'account.html'),
  page('/accept-invite', 'Where the link of an invite leads', 'account.html'),
  page('/payment/success', 'Where a checkout leads to that was paid', 'payment-success.html'),
  page('/payment/cancel', 'Where a checkout leads to that was left', 'payment-cancel.html'),
  parts('/pages/:file', '', PARTS, '*/*'),
  parts('/pages/monitor/:file', 'monitor/', MONITOR_PARTS, 'text/javascript'),
])
