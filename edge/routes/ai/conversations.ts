import { z } from 'zod'
import { copyBranch, findMessage, lockTurns, showBranch } from '../../../sql/ai/branches.ts'
import {
  CONVERSATION_ORDERS,
  cancelPendingTurns,
  deleteConversation,
  findConversationSummary,
  MESSAGE_ORDER,
  readConversation,
  readConversationOwner,
  readConversations,
  renameConversation,
} from '../../../sql/ai/conversations.ts'
import { searchConversations } from '../../../sql/ai/search.ts'
import { fail } from '../../../sql/errors.ts'
import { uuidv7 } from '../../../sql/ids.ts'
import { requireQuota } from '../../../sql/quotas/quotas.ts'
import { conversationActorOf } from '../../../tasks/ai/chat.task.ts'
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
  Id,
  UserQuery,
} from './shapes.ts'

const ACCESS_ERRORS = ['ai.not_yours', 'conversation.missing', 'conversation.denied'] as const

const Title = z
  .string()
  .trim()
  .min(1)
  .refine((title) => [...title].length <= 200, 'must have at most 200 characters')

const ConversationChanges = z
  .strictObject({ title: Title.optional(), active_message_id: Id.optional() })
  .refine((changes) => Object.keys(changes).length > 0, 'must have a title or an active_message_id')
  .meta({ id: 'ConversationChanges' })

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
    description: `Returns the newest messages of the active branch, oldest first; \`next\` leads to older ones. \
\`versions\` lists the messages in the same place. A failed or stopped answer has \
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
    summary: 'Rename a conversation or show another branch',
    description: `\`active_message_id\` names a message of the branch to show. The branch continues with the latest \
version after it, and the next turn continues the branch.`,
    params: ConversationParams,
    query: UserQuery,
    body: ConversationChanges,
    response: ConversationSummary,
    errors: [...ACCESS_ERRORS, 'message.missing'],
    handle: async ({ params: { conversation_id: id }, query, body, caller, edge, transaction }) => {
      await requireAccess(edge, caller, query.user_id, id)
      return transaction(async (tx): Promise<Answer<z.input<typeof ConversationSummary>>> => {
        if (body.active_message_id !== undefined) {
          // A turn reads the branch under the same lock.
          await tx.run(lockTurns(conversationActorOf(id)))
          if ((await tx.maybeOne(showBranch(id, body.active_message_id))) === null)
            throw fail('message.missing')
        }
        const changed = await tx.maybeOne(
          body.title === undefined ? findConversationSummary(id) : renameConversation(id, body.title),
        )
        if (changed === null) throw fail('conversation.missing')
        return answerJson(changed.json)
      })
    },
  }),

  route({
    method: 'post',
    path: '/conversations/:conversation_id/branch',
    summary: 'Copy a branch into a new conversation',
    description: 'Copies the messages up to `message_id`. The new conversation has the same owner.',
    params: ConversationParams,
    query: UserQuery,
    body: z.strictObject({ message_id: Id, title: Title.optional() }).meta({ id: 'BranchRequest' }),
    response: ConversationSummary,
    status: 201,
    errors: [...ACCESS_ERRORS, 'message.missing', 'message.pending', 'quota.conversations'],
    sideEffect: true,
    handle: async ({ params: { conversation_id: id }, query, body, caller, edge, transaction }) => {
      const owner = await requireAccess(edge, caller, query.user_id, id)
      return transaction(async (tx): Promise<Answer<z.input<typeof ConversationSummary>>> => {
        const copyId = uuidv7()
        const from = { conversationId: id, messageId: body.message_id }
        if ((await tx.maybeOne(copyBranch(from, { id: copyId, title: body.title ?? null }))) === null)
          throw fail(
            (await tx.maybeOne(findMessage(id, body.message_id))) === null
              ? 'message.missing'
              : 'message.pending',
          )
        await requireQuota(tx, owner.owner_id, ['conversations'], edge.settings.quotas)
        return answerJson((await tx.one(findConversationSummary(copyId))).json)
      })
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
 * Requires that the caller may access the conversation, and returns its owner.
 * @throws fail('conversation.missing'), fail('conversation.denied'), fail('ai.not_yours')
 */
async function requireAccess(
  { reader }: Edge,
  caller: Caller,
  userId: string | undefined,
  id: string,
): Promise<Parameters<typeof mayAccess>[1]> {
  const user = resolveActingUser(caller, userId)
  const text = await reader.text(readConversationOwner, [id])
  if (text === null) throw fail('conversation.missing')
  const owner = JSON.parse(text) as Parameters<typeof mayAccess>[1]
  if (!mayAccess(user, owner)) throw fail('conversation.denied')
  return owner
}
