import { z } from 'zod'
import { findLastMessage, placeTurn } from '../../../sql/ai/branches.ts'
import { findAttachedDocuments } from '../../../sql/ai/documents.ts'
import {
  findAccountByUserId,
  insertFirstTurn,
  insertTurn,
  type NewQuestion,
  readTurn,
  readTurnByJob,
  readTurnStart,
  TurnState,
} from '../../../sql/ai/turns.ts'
import { insertTurnHold, reserveBudget, type TurnEstimate } from '../../../sql/budgets/budgets.ts'
import { type Queries, readWithin } from '../../../sql/db.ts'
import { fail } from '../../../sql/errors.ts'
import { uuidv7 } from '../../../sql/ids.ts'
import { requireQuota } from '../../../sql/quotas/quotas.ts'
import { readCollectionKind, toViewerValues, type Viewer } from '../../../sql/rag/reads.ts'
import { answerMessage, type ChatResult } from '../../../tasks/ai/chat.task.ts'
import { requireApiKey } from '../../../tasks/ai/keys.ts'
import { type ModelRef, resolveModel } from '../../../tasks/ai/model.ts'
import { formatAnswerOptions } from '../../../tasks/ai/options.ts'
import type { ResponseFormat } from '../../../tasks/ai/ports.ts'
import { enqueue, type JobRef } from '../../../tasks/task.ts'
import type { Caller } from '../../pipeline/access/auth.ts'
import { hasScope, requireScope } from '../../pipeline/access/scopes.ts'
import type { Edge } from '../../pipeline/context.ts'
import { viewerOf } from '../rag/access.ts'
import { type ActingUser, accountIdOf, mayAccess, resolveActingUser } from './callers.ts'
import { type ChatRequest, DEFAULT_CHUNKS } from './shapes.ts'
import { toTools } from './tools.ts'

/** Starts turns, and finds them by answer or job. */

export const DEFAULT_AGENT = 'assistant'
const TITLE_CHARACTERS = 50
const PLACES = [
  { field: 'parent_id', place: 'continue' },
  { field: 'edit_id', place: 'edit' },
  { field: 'regenerate_id', place: 'regenerate' },
] as const

const ConversationOwner = z.object({ user_id: z.string(), owner_id: z.number().nullable() })
type ConversationOwner = z.output<typeof ConversationOwner>
const TurnStart = z.object({
  agent: z.object({ model_id: z.string().nullable(), is_active: z.boolean() }).nullable(),
  chosen: z.object({ vendor: z.string(), model_id: z.string() }).nullable(),
  conversation: ConversationOwner.nullable(),
})

export interface TurnInput {
  readonly edge: Edge
  readonly tx: Queries
  readonly caller: Caller
  readonly requestId: string
}

/**
 * Stores a question together with the job that answers it.
 * @throws every failure that can be found without a model call.
 */
export async function beginTurn(
  input: TurnInput,
  request: ChatRequest,
  stream: boolean,
): Promise<JobRef<ChatResult>> {
  const { edge, tx, caller, requestId } = input
  const user = resolveActingUser(caller, request.user_id)
  const { model, conversation } = await checkTurn(input, user, request)
  const existing = request.conversation_id ?? null
  const conversationId = existing ?? uuidv7()
  const answerId = uuidv7()
  const owner = conversation ?? (await chooseConversationOwner(tx, caller, user))
  const payload = {
    message_id: answerId,
    conversation_id: conversationId,
    ...owner,
    ...(caller.key === null ? {} : { key_id: caller.key.id }),
    agent_slug: request.agent_slug ?? DEFAULT_AGENT,
    ...model,
    stream,
    ...buildRagPayload(request, viewerOf(caller)),
    ...buildAnswerPayload(request),
    sees_documents: hasScope(caller, 'documents', 'read'),
  }
  // The actor is locked before rows, in the order that the end of a turn uses.
  const { ownerId } = caller
  const ref = await enqueue(tx, answerMessage, payload, { ownerId, requestId, settings: edge.settings })
  await reserveTurn(
    input,
    {
      ...{ jobId: ref.jobId, conversationId: existing, ...model },
      inputBytes: countInputBytes(request),
      hasDocuments: request.document_ids !== undefined,
    },
    payload,
  )
  const turn = { conversationId, jobId: ref.jobId, question: toNewQuestion(request), answerId, ...model }
  const { user_id: userId, owner_id } = owner
  if (existing !== null) await prepareBranch(tx, existing, request)
  const title = toTitle(request.message ?? '')
  const stored = await tx.any(
    existing === null ? insertFirstTurn(turn, { userId, ownerId: owner_id, title }) : insertTurn(turn),
  )
  if (stored.length === 0) throw fail('conversation.unknown')
  if (existing === null) await requireQuota(tx, owner_id, ['conversations'], edge.settings.quotas)
  return ref
}

/**
 * Reserves the estimated usage of a turn against the budgets of the conversation's owner and of the API key.
 * @throws fail('quota.ai_budget'), fail('quota.ai_key_budget')
 */
export function reserveTurn(
  { edge, tx }: Pick<TurnInput, 'edge' | 'tx'>,
  turn: Pick<TurnEstimate, 'jobId' | 'conversationId' | 'inputBytes' | 'hasDocuments' | 'provider' | 'model'>,
  payload: { readonly owner_id: number | null; readonly key_id?: string; readonly agent_slug: string },
): Promise<void> {
  const { historyMessages, historyTokens, documentTokens, maxTokens, budgets } = edge.settings.ai
  const payers = { accountId: payload.owner_id, keyId: payload.key_id ?? null }
  const limits = { historyMessages, historyTokens, documentTokens, maxTokens }
  const estimate = { ...turn, ...limits, agentSlug: payload.agent_slug }
  return reserveBudget(tx, payers, budgets, () => insertTurnHold(payers, estimate))
}

/** Returns the size of the parts of a request that the model gets. */
const countInputBytes = ({ message, tool_results, tools }: ChatRequest): number =>
  Buffer.byteLength(message ?? '') + Buffer.byteLength(JSON.stringify([tool_results ?? [], tools ?? []]))

const toTitle = (message: string): string => [...message].slice(0, TITLE_CHARACTERS).join('')

function toNewQuestion({
  message,
  document_ids,
  tool_results,
  regenerate_id,
}: ChatRequest): NewQuestion | null {
  if (regenerate_id !== undefined) return null
  return {
    id: uuidv7(),
    content: message ?? '',
    documentIds: [...new Set(document_ids)],
    toolResults: tool_results ?? null,
  }
}

/** Returns the part of the job payload about tools and the form of the answer; empty for text without tools. */
export function buildAnswerPayload(
  request: Pick<ChatRequest, 'tools' | 'tool_choice' | 'parallel_tool_calls' | 'response_format'>,
): { readonly answer_options?: string } {
  const tools = toTools(request)
  const { response_format: format } = request
  const responseFormat = format === undefined || format.type === 'text' ? undefined : omitNullOptions(format)
  if (tools === undefined && responseFormat === undefined) return {}
  return { answer_options: formatAnswerOptions({ tools, responseFormat }) }
}

/** Drops optional fields that are null, which not every provider accepts. */
function omitNullOptions(format: ResponseFormat): ResponseFormat {
  if (format.type !== 'json_schema') return format
  const given = Object.entries(format.json_schema).filter(([, value]) => value !== null)
  return { ...format, json_schema: Object.fromEntries(given) as typeof format.json_schema }
}

/**
 * Makes the branch active that the turn continues. Runs under the lock of the conversation's turns.
 * @throws fail('message.unknown', 'message.no_calls', 'message.unmatched_calls')
 */
async function prepareBranch(tx: Queries, conversationId: string, request: ChatRequest): Promise<void> {
  for (const { field, place } of PLACES) {
    const messageId = request[field]
    if (messageId !== undefined && (await tx.maybeOne(placeTurn(conversationId, place, messageId))) === null)
      throw fail('message.unknown', { field })
  }
  const results = request.tool_results
  if (results === undefined) return
  const calls = (await tx.maybeOne(findLastMessage(conversationId)))?.tool_calls ?? null
  if (calls === null) throw fail('message.no_calls')
  const ids = calls.map(({ id }) => id)
  const given = results.map((result) => result.tool_call_id)
  if (ids.length !== given.length || !ids.every((id) => given.includes(id)))
    throw fail('message.unmatched_calls', { ids: ids.join(', ') })
}

/** Returns the part of the job payload that selects a collection; empty if the answer uses none. */
function buildRagPayload({ rag_collection, rag_top_k = DEFAULT_CHUNKS }: ChatRequest, { seesAll }: Viewer) {
  if (rag_collection === undefined) return {}
  return { rag: { collection: rag_collection, top_k: rag_top_k, sees_all: seesAll } }
}

/** Starts a turn like {@link beginTurn}, but its response is a stream instead of the job's result. */
export async function beginStreamedTurn(input: TurnInput, request: ChatRequest): Promise<JobRef<undefined>> {
  const { jobId, joined } = await beginTurn(input, request, true)
  return { jobId, joined, result: z.undefined() }
}

/**
 * Checks that a turn may start. Returns its model, and its conversation, which is null for a new one.
 * @throws the failure if it may not start.
 */
async function checkTurn(
  { edge, tx, caller }: TurnInput,
  user: ActingUser,
  { agent_slug, conversation_id = null, rag_collection, document_ids }: ChatRequest,
): Promise<{ model: ModelRef; conversation: ConversationOwner | null }> {
  const agent = await checkAgent({ edge, tx }, agent_slug, conversation_id)
  const { conversation } = agent
  if (conversation_id !== null) {
    if (conversation === null) throw fail('conversation.unknown')
    if (!mayAccess(user, conversation)) throw fail('conversation.denied')
  }
  if (rag_collection !== undefined) {
    requireScope(caller, 'rag', 'read')
    const state = await readWithin(tx, readCollectionKind, [
      rag_collection,
      ...toViewerValues(viewerOf(caller)),
    ])
    if (state === null) throw fail('rag.missing')
  }
  if (document_ids !== undefined) await requireDocuments({ edge, tx, caller }, document_ids)
  return { model: requireModel(edge, agent), conversation }
}

interface CheckedAgent extends Pick<z.output<typeof TurnStart>, 'chosen' | 'conversation'> {
  readonly modelId: string | null
}

/**
 * Checks that an agent may answer; without a slug, the default one. Reads the conversation as well, null without one.
 * @throws fail('ai.disabled', 'agent.missing', 'agent.inactive', 'agent.none')
 */
export async function checkAgent(
  { edge, tx }: Pick<TurnInput, 'edge' | 'tx'>,
  given: string | undefined,
  conversationId: string | null,
): Promise<CheckedAgent> {
  if (!edge.settings.ai.enabled) throw fail('ai.disabled')
  const slug = given ?? DEFAULT_AGENT
  const text = await readWithin(tx, readTurnStart, [slug, conversationId])
  const { agent, chosen, conversation } = TurnStart.parse(JSON.parse(text!))
  if (agent === null) throw fail('agent.missing')
  if (!agent.is_active) throw given === undefined ? fail('agent.none', { slug }) : fail('agent.inactive')
  return { modelId: agent.model_id, chosen, conversation }
}

/** Returns the model of an agent. @throws fail('ai.missing_key') */
export function requireModel({ settings: { ai } }: Edge, { chosen, modelId }: CheckedAgent): ModelRef {
  const model = resolveModel(ai, chosen, modelId)
  requireApiKey(ai, model.provider)
  return model
}

/**
 * Requires that the caller may read the documents, and that the model can.
 * @throws fail('message.documents_missing', 'message.documents_unread')
 */
async function requireDocuments(
  { edge, tx, caller }: Pick<TurnInput, 'edge' | 'tx' | 'caller'>,
  ids: readonly number[],
): Promise<void> {
  requireScope(caller, 'documents', 'read')
  // The area of documents is never open, even to those for whom this one is.
  const mayRead = caller.ownerId !== null || edge.settings.authLevel === 'none'
  const found = mayRead ? await tx.any(findAttachedDocuments(ids, caller.ownerId)) : []
  const missing = ids.filter((id) => !found.some((document) => document.id === id))
  if (missing.length > 0) throw fail('message.documents_missing', { ids: missing.join(', ') })
  const unread = found.filter(({ is_ready }) => !is_ready).map(({ id }) => id)
  if (unread.length > 0) throw fail('message.documents_unread', { ids: unread.join(', ') })
}

/** Returns the owner of a new conversation, which is the caller or the account for which an admin starts it. */
async function chooseConversationOwner(
  tx: Queries,
  caller: Caller,
  { userId, seesAll }: ActingUser,
): Promise<ConversationOwner> {
  if (!seesAll || userId === String(caller.ownerId)) return { user_id: userId, owner_id: caller.ownerId }
  const named = accountIdOf(userId)
  const account = named === null ? null : await tx.maybeOne(findAccountByUserId(named))
  return { user_id: userId, owner_id: account?.id ?? null }
}

/** Finds the turn of an answer or a job. @throws fail('turn.missing'), fail('conversation.denied') */
export async function findTurn(
  { reader }: Edge,
  user: ActingUser,
  by: { readonly messageId: string } | { readonly jobId: string },
): Promise<TurnState> {
  const text = await ('jobId' in by
    ? reader.text(readTurnByJob, [by.jobId])
    : reader.text(readTurn, [by.messageId]))
  if (text === null) throw fail('turn.missing')
  const turn = TurnState.parse(JSON.parse(text))
  if (!mayAccess(user, turn)) throw fail('conversation.denied')
  return turn
}
