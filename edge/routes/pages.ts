import { z } from 'zod'
import { fail } from '../../sql/errors.ts'
import { UNSUBSCRIBE_PATH } from '../../tasks/comms/unsubscribe.ts'
import { PAGE_HEADERS, sendFile } from '../files/static.ts'
import { type AnyRoute, area, route } from '../pipeline/route.ts'
import { unsubscribeRoute } from './comms/unsubscribe.ts'

const PAGES_FOLDER = new URL('../pages/', import.meta.url)

// Scripts and styles may come only from this origin, and no other page may embed these pages in frames.
const HEADERS = [
  [
    'content-security-policy',
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'",
  ],
  ...PAGE_HEADERS,
] as const

// The only files that these routes serve.
const PAGE_ASSETS = new Set(['page.css', 'monitor.css', 'mark.svg', 'account.js', 'oidc.js'])
const MONITOR_ASSETS = new Set([
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

/** Declares a route for a file of `edge/pages`. */
function createPageRoute(path: string, summary: string, file: string, params?: z.ZodType): AnyRoute {
  return route({
    method: 'get',
    path,
    summary,
    ...(params === undefined ? {} : { params }),
    produces: 'text/html',
    alsoAnswers: NOT_MODIFIED,
    raw: (input) => sendFile(input, new URL(file, PAGES_FOLDER), HEADERS),
  })
}

/** Declares a route for the named assets of pages. `produces` may be a range of media types. */
function createAssetsRoute(
  path: string,
  folder: string,
  names: ReadonlySet<string>,
  produces: string,
): AnyRoute {
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
      return sendFile(input, new URL(`${folder}${input.params.file}`, PAGES_FOLDER), HEADERS)
    },
  })
}

const NOT_MODIFIED = { 304: 'The client already has this version' }

/** Routes for the home page, the monitor, and the pages to which emails and the payment provider link. */
export const pages = area('pages', '', { auth: 'public', allowsAnyQuery: true }, [
  createPageRoute('/', 'Show the home page', 'home.html'),
  createPageRoute('/monitor', 'Show live queues, jobs and workers', 'monitor.html'),
  createPageRoute('/monitor/jobs', 'Show the job search with bulk actions', 'monitor.html'),
  createPageRoute(
    '/monitor/jobs/:job_id',
    'Show a job with its live events',
    'monitor.html',
    z.object({ job_id: z.string() }),
  ),
  createPageRoute('/monitor/schedules', 'Show schedules with their last and next runs', 'monitor.html'),
  createPageRoute('/monitor/documents', 'Show the documents of the account', 'monitor.html'),
  createPageRoute(
    '/monitor/documents/:id',
    'Show page images and text of a document',
    'monitor.html',
    z.object({ id: z.string() }),
  ),
  createPageRoute('/monitor/usage', 'Show quotas and, to admins, storage and spending', 'monitor.html'),
  createPageRoute('/setup', 'Show the page that creates the first admin', 'account.html'),
  createPageRoute('/verify-email', 'Show the page that verifies an email address', 'account.html'),
  createPageRoute('/email-change', 'Show the page that confirms an email change', 'account.html'),
  createPageRoute('/email-change/refuse', 'Show the page that refuses an email change', 'account.html'),
  createPageRoute('/oidc', 'Show the page that signs in with OpenID Connect', 'oidc.html'),
  createPageRoute('/magic-link', 'Show the page that signs in with an emailed link', 'account.html'),
  createPageRoute('/password-reset', 'Show the page that resets a password', 'account.html'),
  createPageRoute('/register', 'Show the page that registers an invited address', 'account.html'),
  createPageRoute('/accept-invite', 'Show the page that accepts an invite', 'account.html'),
  createPageRoute(UNSUBSCRIBE_PATH, 'Show the page that unsubscribes from emails', 'account.html'),
  unsubscribeRoute,
  createPageRoute('/payment/success', 'Show the page after a paid checkout', 'payment-success.html'),
  createPageRoute('/payment/cancel', 'Show the page after a cancelled checkout', 'payment-cancel.html'),
  createAssetsRoute('/pages/:file', '', PAGE_ASSETS, '*/*'),
  createAssetsRoute('/pages/monitor/:file', 'monitor/', MONITOR_ASSETS, 'text/javascript'),
])
