import { z } from 'zod'
import {
  CONVERSATION_ORDERS,
  cancelPendingTurns,
  deleteConversation,
  MESSAGE_ORDER,
  readConversation,
  readConversationOwner,
  readConversations,
  renameConversation,
} from '../../../sql/ai/conversations.ts'
import { searchConversations } from '../../../sql/ai/search.ts'
import { fail } from '../../../sql/errors.ts'
import type { Caller } from '../../pipeline/access/auth.ts'
import type { Edge } from '../../pipeline/context.ts'
import {
  answerArray,
  buildCursorSchema,
  buildSortSchema,
  buildTimeRangeFields,
} from '../../pipeline/request/lists.ts'
import { count } from '../../pipeline/request/schemas.ts'
import { type Answer, answerJson, route } from '../../pipeline/route.ts'
import { accountIdOf, mayAccess, resolveActingUser, UserId } from './callers.ts'
import {
  Conversation,
  ConversationParams,
  ConversationSummary,
  FoundConversation,
  UserQuery,
} from './shapes.ts'

const ACCESS_ERRORS = ['ai.not_yours', 'conversation.missing', 'conversation.denied'] as const

const LATEST_FIRST = { column: 'updated_at', direction: 'desc' } as const

/** Stored conversations. */
export const conversationRoutes = [
  route({
    method: 'get',
    path: '/conversations',
    summary: 'List the conversations of a user',
    description: `Sorted by latest change unless \`sort\` is given. \`updated_at\` is the \`last_activity\` of a conversation. \
\`search\` finds conversations whose title and messages together have all of its words: whole words and their beginnings, \
"phrases", numbers and dates in any notation; \`-word\` excludes a word. \`match\` then has the message with most of the \
words, or the title if \`message_id\` is null, and a snippet of it.`,
    query: z.object({
      user_id: UserId.optional(),
      search: z.string().max(500).optional(),
      ...buildTimeRangeFields('Changed last'),
      sort: buildSortSchema(CONVERSATION_ORDERS),
      limit: count({ min: 1, max: 200, fallback: 50 }),
      cursor: buildCursorSchema(CONVERSATION_ORDERS.updated_at),
    }),
    response: z.array(FoundConversation),
    errors: ['ai.not_yours'],
    reads: 'list',
    handle: async ({ query, caller, reader, request }) => {
      const { user_id, search, from = null, to = null, sort = LATEST_FIRST, cursor = null, limit } = query
      const { userId, ownerId, seesAll } = resolveActingUser(caller, user_id)
      // Admins who name another user also see that user's conversations without an owner.
      const isForOther = seesAll && userId !== String(ownerId)
      const ownership = isForOther
        ? ([accountIdOf(userId), true] as const)
        : ([ownerId, ownerId === null] as const)
      const { column, direction } = sort
      const filters = [userId, ...ownership, from, to] as const
      const page = [cursor, 0, limit] as const
      const text =
        search === undefined
          ? await reader.text(readConversations[column][direction], [...filters, ...page])
          : await reader.text(searchConversations[column][direction], [...filters, search, ...page])
      return answerArray(text!, request)
    },
  }),

  route({
    method: 'get',
    path: '/conversations/:conversation_id',
    summary: 'Get a conversation with its messages',
    description: `Returns the newest messages, oldest first; \`next\` leads to older ones. A failed or stopped answer has \
the text received so far, and is omitted if it has none.`,
    params: ConversationParams,
    query: UserQuery.extend({
      limit: count({ min: 1, max: 1000, fallback: 200 }),
      cursor: buildCursorSchema(MESSAGE_ORDER),
    }),
    response: Conversation,
    errors: ACCESS_ERRORS,
    reads: 'list',
    handle: async ({ params: { conversation_id: id }, query, caller, edge, reader }) => {
      const [text] = await Promise.all([
        reader.text(readConversation, [id, query.cursor ?? null, 0, query.limit]),
        requireAccess(edge, caller, query.user_id, id),
      ])
      if (text === null) throw fail('conversation.missing')
      return answerJson(text)
    },
  }),

  route({
    method: 'patch',
    path: '/conversations/:conversation_id',
    summary: 'Rename a conversation',
    params: ConversationParams,
    query: UserQuery,
    body: z
      .strictObject({
        title: z
          .string()
          .trim()
          .min(1)
          .refine((title) => [...title].length <= 200, 'must have at most 200 characters'),
      })
      .meta({ id: 'ConversationChanges' }),
    response: ConversationSummary,
    errors: ACCESS_ERRORS,
    handle: async ({
      params: { conversation_id: id },
      query,
      body,
      caller,
      edge,
    }): Promise<Answer<z.input<typeof ConversationSummary>>> => {
      await requireAccess(edge, caller, query.user_id, id)
      const renamed = await edge.db.maybeOne(renameConversation(id, body.title))
      if (renamed === null) throw fail('conversation.missing')
      return answerJson(renamed.json)
    },
  }),

  route({
    method: 'delete',
    path: '/conversations/:conversation_id',
    summary: 'Delete a conversation',
    description: 'Stops its turns. Their usage stays in the statistics.',
    params: ConversationParams,
    query: UserQuery,
    errors: ACCESS_ERRORS,
    handle: async ({ params: { conversation_id: id }, query, caller, edge, transaction }) => {
      await requireAccess(edge, caller, query.user_id, id)
      return transaction(async (tx) => {
        // Jobs are locked before rows, in the order that the end of a turn uses.
        const stopped = await tx.any(cancelPendingTurns(id))
        await tx.run(deleteConversation(id))
        tx.afterCommit(() => {
          for (const { job_id } of stopped) edge.publisher.notify(job_id)
        })
        return undefined
      })
    },
  }),
]

/**
 * Requires that the caller may access the conversation.
 * @throws fail('conversation.missing'), fail('conversation.denied'), fail('ai.not_yours')
 */
async function requireAccess(
  { reader }: Edge,
  caller: Caller,
  userId: string | undefined,
  id: string,
): Promise<void> {
  const user = resolveActingUser(caller, userId)
  const text = await reader.text(readConversationOwner, [id])
  if (text === null) throw fail('conversation.missing')
  if (!mayAccess(user, JSON.parse(text) as Parameters<typeof mayAccess>[1])) throw fail('conversation.denied')
}
