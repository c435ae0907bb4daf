import { readdirSync } from 'node:fs'
import { z } from 'zod'
import { fail } from '../../sql/errors.ts'
import { UNSUBSCRIBE_PATH } from '../../tasks/comms/unsubscribe.ts'
import { PAGE_HEADERS, sendFile } from '../files/static.ts'
import declaredPages from '../pages/pages.json' with { type: 'json' }
import { type AnyRoute, area, route } from '../pipeline/route.ts'
import { unsubscribeRoute } from './comms/unsubscribe.ts'

const PAGES_FOLDER = new URL('../pages/', import.meta.url)

// Scripts and styles may come only from this origin, and no other page may embed these pages in frames.
const HEADERS = [
  [
    'content-security-policy',
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob:; media-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'",
  ],
  ...PAGE_HEADERS,
] as const

/** Libraries that the pages import, as modules for browsers. */
const VENDOR_FILES: Readonly<Record<string, string>> = {
  'uPlot.esm.js': 'uplot/dist/uPlot.esm.js',
  'uPlot.min.css': 'uplot/dist/uPlot.min.css',
  'uqr.mjs': 'uqr/dist/index.mjs',
  'markdown-it.mjs': 'markdown-it/dist/browser/markdown-it.esm.min.mjs',
}

/** The files that these routes serve, by `FOLDER/NAME`: every asset of a folder, and the libraries. */
const assets = new Map<string, URL>([
  ...readdirSync(PAGES_FOLDER, { recursive: true, encoding: 'utf8' })
    .map((file) => file.replaceAll('\\', '/'))
    .filter((file) => /^\w+\/[\w-]+\.(?:js|css|svg)$/.test(file))
    .map((file): [string, URL] => [file, new URL(file, PAGES_FOLDER)]),
  ...Object.entries(VENDOR_FILES).map(([name, file]): [string, URL] => [
    `vendor/${name}`,
    new URL(`../../node_modules/${file}`, import.meta.url),
  ]),
])

/** Declares a route for a file of `edge/pages`. */
function createPageRoute(path: string, summary: string, file: string): AnyRoute {
  const names = [...path.matchAll(/:(\w+)/g)].map(([, name]) => name!)
  const params =
    names.length === 0
      ? {}
      : { params: z.object(Object.fromEntries(names.map((name) => [name, z.string()]))) }
  return route({
    method: 'get',
    path,
    summary,
    ...params,
    produces: 'text/html',
    alsoAnswers: NOT_MODIFIED,
    raw: (input) => sendFile(input, new URL(file, PAGES_FOLDER), HEADERS),
  })
}

const NOT_MODIFIED = { 304: 'The client already has this version' }

const listRoute = route({
  method: 'get',
  path: '/pages/pages.json',
  summary: 'Get the list of pages',
  response: z.array(z.looseObject({ path: z.string(), title: z.string(), module: z.string() })),
  alsoAnswers: NOT_MODIFIED,
  raw: (input) => sendFile(input, new URL('pages.json', PAGES_FOLDER), HEADERS),
})

const assetRoute = route({
  method: 'get',
  path: '/pages/:folder/:file',
  summary: 'Get an asset of a page',
  params: z.object({ folder: z.string(), file: z.string() }),
  produces: '*/*',
  alsoAnswers: NOT_MODIFIED,
  errors: ['route.missing'],
  raw: async (input) => {
    const asset = assets.get(`${input.params.folder}/${input.params.file}`)
    if (asset === undefined) throw fail('route.missing')
    return sendFile(input, asset, HEADERS)
  },
})

/** Routes for the pages of `pages.json`, and for those to which emails and the payment provider link. */
export const pages = area('pages', '', { auth: 'public', allowsAnyQuery: true }, [
  ...declaredPages.map(({ path, summary }) => createPageRoute(path, summary, 'shell.html')),
  createPageRoute('/setup', 'Show the page that creates the first admin', 'landing/link.html'),
  createPageRoute('/verify-email', 'Show the page that verifies an email address', 'landing/link.html'),
  createPageRoute('/email-change', 'Show the page that confirms an email change', 'landing/link.html'),
  createPageRoute('/email-change/refuse', 'Show the page that refuses an email change', 'landing/link.html'),
  createPageRoute('/oidc', 'Show the page that signs in with OpenID Connect', 'landing/oidc.html'),
  createPageRoute('/magic-link', 'Show the page that signs in with an emailed link', 'landing/link.html'),
  createPageRoute('/password-reset', 'Show the page that resets a password', 'landing/link.html'),
  createPageRoute('/register', 'Show the page that registers an account', 'landing/link.html'),
  createPageRoute('/accept-invite', 'Show the page that accepts an invite', 'landing/link.html'),
  createPageRoute(UNSUBSCRIBE_PATH, 'Show the page that unsubscribes from emails', 'landing/link.html'),
  unsubscribeRoute,
  createPageRoute('/payment/success', 'Show the page after a paid checkout', 'landing/payment-success.html'),
  createPageRoute(
    '/payment/cancel',
    'Show the page after a cancelled checkout',
    'landing/payment-cancel.html',
  ),
  listRoute,
  assetRoute,
])
