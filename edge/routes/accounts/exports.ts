import { z } from 'zod'
import { EXPORT_ORDER, findExportContent, isStored, readExports } from '../../../sql/accounts/exports.ts'
import { fail } from '../../../sql/errors.ts'
import { isUuid } from '../../../sql/ids.ts'
import { ExportResult, exportAccount } from '../../../tasks/accounts/export.task.ts'
import { createJob } from '../../../tasks/task.ts'
import { CONTENT_ERRORS, CONTENT_STATUSES, sendStored } from '../../files/content.ts'
import { answerArray, buildCursorSchema } from '../../pipeline/request/lists.ts'
import { count, Timestamp } from '../../pipeline/request/schemas.ts'
import { route } from '../../pipeline/route.ts'

const Export = z
  .strictObject({
    id: z.uuid(),
    byte_size: z.int(),
    created_at: Timestamp,
    expires_at: Timestamp.nullable(),
  })
  .meta({ id: 'AccountExport' })

/** Routes that export all data of an account. */
export const exportRoutes = [
  route({
    method: 'post',
    path: '/me/export',
    summary: 'Export all data of the caller',
    description: `A job with progress packs a zip archive of the account with its sessions, API keys, memberships, \
documents and their page texts, collections, conversations, usage, posts, jobs, sent messages, payments, webhooks and audit \
events. The archive has files of JSON lines, and the documents as they were stored. It excludes passwords, tokens, secrets \
and data of others. A request during an unfinished export joins it. \`RATE_LIMIT_EXPORT\` limits the exports of an account, \
except for admins.`,
    response: ExportResult.meta({ id: 'AccountExportResult' }),
    errors: ['account.missing', 'document.store_failed'],
    sideEffect: true,
    needsSession: true,
    limit: 'export',
    task: ({ caller }) => {
      if (caller.ownerId === null) throw fail('account.missing')
      return createJob(exportAccount, { account_id: caller.ownerId })
    },
  }),

  route({
    method: 'get',
    path: '/me/export',
    summary: 'List the exports of the caller, newest first',
    description: 'Lists only finished exports; each is kept for `EXPORTS_KEEP_DAYS`.',
    query: z.object({
      limit: count({ min: 1, max: 1000, fallback: 100 }),
      cursor: buildCursorSchema(EXPORT_ORDER),
    }),
    response: z.array(Export),
    needsSession: true,
    reads: 'list',
    handle: async ({ query: { limit, cursor = null }, caller, edge, reader, request }) => {
      const values = [caller.ownerId ?? 0, edge.settings.retentionDays.exports, cursor, 0, limit] as const
      return answerArray((await reader.text(readExports, values))!, request)
    },
  }),

  route({
    method: 'get',
    path: '/me/export/:id',
    summary: 'Download an export of the caller',
    description: 'Its id is the id of its job. Supports `Range`, `If-None-Match` and `If-Range`.',
    params: z.object({ id: z.string() }),
    produces: 'application/zip',
    alsoAnswers: CONTENT_STATUSES,
    errors: ['export.missing', ...CONTENT_ERRORS],
    needsSession: true,
    raw: async (input) => {
      const { params, caller, edge } = input
      if (!isUuid(params.id) || caller.ownerId === null) throw fail('export.missing')
      const { exports: days } = edge.settings.retentionDays
      const content = await edge.db.maybeOne(findExportContent(params.id, caller.ownerId, days))
      if (content === null) throw fail('export.missing')
      if (!isStored(content)) throw fail('document.bytes_missing')
      const { byte_size: byteSize, sha256, day } = content
      return sendStored(input, {
        at: content,
        byteSize,
        sha256,
        headers: [
          ['content-type', 'application/zip'],
          ['content-disposition', `attachment; filename="account-${day}.zip"`],
        ],
      })
    },
  }),
]
