import type { ChatResult } from '../../../tasks/ai/chat.task.ts'
import type { EdgeRequest } from '../../http/server.ts'
import type { Caller } from '../../pipeline/access/auth.ts'
import type { Edge } from '../../pipeline/context.ts'
import { readLastEventId } from '../../pipeline/request/input.ts'
import { type Follow, route } from '../../pipeline/route.ts'
import type { StreamSource } from '../../streams/sse.ts'
import { type ActingUser, resolveActingUser } from './callers.ts'
import { ChatQuery, ChatRequest, ChatResponse, StreamParams, UserQuery } from './shapes.ts'
import { beginStreamedTurn, beginTurn, findTurn } from './turn.ts'
import { buildExampleStream, followTurn, parsePosition } from './turn-stream.ts'

const CHAT_ERRORS = [
  'ai.not_yours',
  'ai.disabled',
  'ai.missing_key',
  'ai.refused',
  'ai.failed',
  'ai.interrupted',
  'agent.missing',
  'agent.inactive',
  'agent.none',
  'conversation.unknown',
  'conversation.denied',
  'conversation.gone',
  'message.unknown',
  'message.no_calls',
  'message.unmatched_calls',
  'message.documents_missing',
  'message.documents_unread',
  'rag.missing',
  'rag.busy',
  'quota.conversations',
  'quota.ai_budget',
  'quota.ai_key_budget',
] as const

const TURN_DESCRIPTION = `Omit conversation_id to start a conversation, titled with the first 50 characters of the message. \
Accounts use their own user_id; only admins may use another. Callers without a credential may use any user_id, by \
default \`api-user\`. The message is stored before the model is called. With \`rag_collection\`, the model receives the \
best chunks of that collection (\`rag_top_k\`, 5 by default), and \`rag_sources\` of the response lists them. An API \
key then needs the scope to read collections. Turns of one conversation run one after the other. \
\`finish_reason\` is \`stop\` for a whole answer; the token limit (\`length\`) or a filter (\`content_filter\`) may have cut it. \
\`reasoning\` is the model's reasoning, if it shows any; later turns do not send it.

\`parent_id\` continues an answer in a branch of its own, \`edit_id\` replaces a question, and \`regenerate_id\` answers a \
question again, without a message. All versions stay; the conversation shows the branch of the latest turn. \
\`document_ids\` names documents of the caller: the model gets their text, and pictures if it sees them.

\`tools\` are functions with a JSON Schema, as in OpenAI's protocol. If the model calls some, \`finish_reason\` is \
\`tool_calls\` and \`tool_calls\` lists them. The caller answers with \`tool_results\` for all of them, in place of a message, \
and sends the tools again. With a \`response_format\` of \`json_object\` or \`json_schema\`, the answer is JSON, or the turn fails.`

const STREAM_DESCRIPTION = `Sends server-sent events: \`connect\` with conversation_id, message_id and job_id; a \`chunk\` for \
each piece; \`tool_call\` with id, name and arguments for each call; \`final\` with the full answer, then \`complete\`; \
or \`error\` with detail, and \`retry_after\` (seconds) if the provider asks for a pause. On \`restart\`, discard all \
earlier chunks: the turn has started over. To resume, send the id of the last event as \`Last-Event-ID\`, here or to \
\`GET /ai/chat/stream/{message_id}\`. Any process resumes the turn, without starting another one. Closing the stream \
does not stop the turn. \`DELETE /jobs/{job_id}\` stops it and keeps the text received so far.`

const STREAM_EXAMPLE = buildExampleStream()

/** Routes that send a message, and return or stream the answer. */
export const chatRoutes = [
  route({
    method: 'post',
    path: '/chat',
    summary: 'Send a message and wait for the answer',
    description: TURN_DESCRIPTION,
    body: ChatRequest,
    response: ChatResponse,
    errors: CHAT_ERRORS,
    sideEffect: true,
    job: ({ body, ...input }) => beginTurn(input, body, false),
    answer: (result) => {
      const { provider: _provider, model: _model, timestamp: _timestamp, ...answer } = result as ChatResult
      return answer
    },
  }),

  route({
    method: 'post',
    path: '/chat/stream',
    summary: 'Send a message and stream the answer',
    description: `${TURN_DESCRIPTION} ${STREAM_DESCRIPTION}`,
    body: ChatRequest,
    produces: 'text/event-stream',
    example: STREAM_EXAMPLE,
    errors: CHAT_ERRORS,
    sideEffect: true,
    job: ({ body, ...input }) => beginStreamedTurn(input, body),
    follow: createTurnFollower(({ body }: StreamInput & { body: ChatRequest }) => body.user_id),
  }),

  route({
    method: 'get',
    path: '/chat/stream',
    summary: 'Send a message from an EventSource',
    costsMoney: true,
    description: `Takes the message from the query, for the \`EventSource\` of browsers. ${TURN_DESCRIPTION} ${STREAM_DESCRIPTION}`,
    query: ChatQuery,
    produces: 'text/event-stream',
    example: STREAM_EXAMPLE,
    errors: CHAT_ERRORS,
    job: ({ query, ...input }) => beginStreamedTurn(input, query),
    follow: createTurnFollower(({ query }: StreamInput & { query: ChatRequest }) => query.user_id),
  }),

  route({
    method: 'get',
    path: '/chat/stream/:message_id',
    summary: 'Stream an existing answer',
    description: `Starts at the beginning, or after \`Last-Event-ID\`. ${STREAM_DESCRIPTION}`,
    params: StreamParams,
    query: UserQuery,
    produces: 'text/event-stream',
    example: STREAM_EXAMPLE,
    errors: ['ai.not_yours', 'turn.missing', 'conversation.denied'],
    stream: async ({ params, query, request, caller, edge }) => {
      const { message_id: messageId } = params
      const position = parsePosition(readLastEventId(request))
      const turn = await findTurn(edge, resolveActingUser(caller, query.user_id), { messageId })
      return followTurn(edge.hub, turn, position?.messageId === messageId ? position.seq : null)
    },
  }),
]

interface StreamInput {
  readonly edge: Edge
  readonly caller: Caller
  readonly request: EdgeRequest
}

/**
 * Streams the turn that a request starts. If the request has the event id of an earlier turn, resumes that turn
 * instead.
 */
function createTurnFollower<I extends StreamInput>(userIdOf: (input: I) => string | undefined): Follow<I> {
  const user = (input: I): ActingUser => resolveActingUser(input.caller, userIdOf(input))
  return {
    resume: async (input): Promise<StreamSource | null> => {
      const position = parsePosition(readLastEventId(input.request))
      if (position === null) return null
      const turn = await findTurn(input.edge, user(input), { messageId: position.messageId })
      return followTurn(input.edge.hub, turn, position.seq)
    },
    open: async (input, jobId) =>
      followTurn(input.edge.hub, await findTurn(input.edge, user(input), { jobId }), null),
  }
}
