import { readFile } from 'node:fs/promises'
import { z } from 'zod'
import { fail } from '../../sql/errors.ts'
import { type AnyRoute, area, route } from '../route.ts'

const FOLDER = new URL('../pages/', import.meta.url)

// Scripts and styles come from here only; nothing frames these pages, and their address tells nobody anything.
const HEADERS = [
  [
    'content-security-policy',
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'",
  ],
  ['referrer-policy', 'no-referrer'],
  ['x-content-type-options', 'nosniff'],
] as const

// An allow-list, not a folder.
const ASSETS: Readonly<Record<string, string>> = {
  'page.css': 'text/css; charset=utf-8',
  'account.js': 'text/javascript; charset=utf-8',
}

/** A page as a file of `edge/pages`. */
function page(path: string, summary: string, file: string): AnyRoute {
  return route({
    method: 'get',
    path,
    summary,
    produces: 'text/html',
    raw: async ({ request, responder, head }) => {
      const headers = [['content-type', 'text/html; charset=utf-8'], ...HEADERS] as const
      responder.send({
        ...head(200, headers),
        body: await readFile(new URL(file, FOLDER)),
        head: request.method === 'HEAD',
      })
      return undefined
    },
  })
}

/** The pages that mails and the payment provider lead to. */
export const pages = area('pages', '', { auth: 'public' }, [
  page('/verify-email', 'Where the link of a verification mail leads', 'account.html'),
  page('/password-reset', 'Where the link of a reset mail leads', 'account.html'),
  page('/accept-invite', 'Where the link of an invite leads', 'account.html'),
  page('/payment/success', 'Where a checkout leads to that was paid', 'payment-success.html'),
  page('/payment/cancel', 'Where a checkout leads to that was left', 'payment-cancel.html'),
  route({
    method: 'get',
    path: '/pages/:file',
    summary: 'A part of a page',
    params: z.object({ file: z.string() }),
    produces: 'text/plain',
    errors: ['route.missing'],
    raw: async ({ params, request, responder, head }) => {
      const type = Object.hasOwn(ASSETS, params.file) ? ASSETS[params.file] : undefined
      if (type === undefined) throw fail('route.missing')
      responder.send({
        ...head(200, [['content-type', type], ['cache-control', 'public, max-age=3600'], ...HEADERS]),
        body: await readFile(new URL(params.file, FOLDER)),
        head: request.method === 'HEAD',
      })
      return undefined
    },
  }),
])
