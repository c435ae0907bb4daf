import type { ChatResult } from '../../../tasks/ai/chat.ts'
import type { EdgeRequest } from '../../http/server.ts'
import type { Caller } from '../../pipeline/auth.ts'
import type { Edge } from '../../pipeline/context.ts'
import { type Follow, route } from '../../pipeline/route.ts'
import type { StreamSource } from '../../streams/sse.ts'
import { type Who, whoOf } from './callers.ts'
import { ByUser, ChatQuery, ChatRequest, ChatResponse, StreamParams } from './shapes.ts'
import { beginStream, beginTurn, turnFor } from './turn.ts'
import { exampleStream, followTurn, positionOf } from './turn-stream.ts'

const ERRORS = [
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
  'rag.missing',
  'rag.busy',
] as const

const TURNS = `Omit conversation_id to start a conversation, titled with the first 50 characters of the message. A \
signed-in caller is their own user_id, and only admins may name another; a caller without a credential is whoever they \
name, \`api-user\` by default. The message is stored before the model is called. With \`rag_collection\`, the best \
chunks of that collection (\`rag_top_k\`, 5 by default) are passed to the model and listed in \`rag_sources\` of the \
response; an API key needs the scope to read collections for it. Turns of one conversation run one after the other.`

const STREAM = `Sends server-sent events: \`connect\` with conversation_id, message_id and job_id; a \`chunk\` for \
each piece; \`final\` with the full answer; \`complete\`; or \`error\` with detail. On \`restart\`, discard all \
earlier chunks: the turn has started over. Every event has an id; send it as \`Last-Event-ID\` to resume here or at \
\`GET /ai/chat/stream/{message_id}\`, on any process, without starting another turn. Closing the stream does not stop \
the turn; \`DELETE /jobs/{job_id}\` does, and keeps what was received so far.`

const STREAM_EXAMPLE = exampleStream()

/** Asking a question and getting the answer. */
export const chatRoutes = [
  route({
    method: 'post',
    path: '/chat',
    summary: 'Send a message and wait for the answer',
    description: TURNS,
    body: ChatRequest,
    response: ChatResponse,
    errors: ERRORS,
    sideEffect: true,
    job: ({ body, ...input }) => beginTurn(input, body, false),
    answer: (result) => {
      const { message_id, content, conversation_id, response_time_ms, rag_sources } = result as ChatResult
      return {
        message_id,
        content,
        conversation_id,
        response_time_ms,
        ...(rag_sources === undefined ? {} : { rag_sources }),
      }
    },
  }),

  route({
    method: 'post',
    path: '/chat/stream',
    summary: 'Send a message and stream the answer',
    description: `${TURNS} ${STREAM}`,
    body: ChatRequest,
    produces: 'text/event-stream',
    example: STREAM_EXAMPLE,
    errors: ERRORS,
    sideEffect: true,
    job: ({ body, ...input }) => beginStream(input, body),
    follow: following(({ body }: Asking & { body: ChatRequest }) => body.user_id),
  }),

  route({
    method: 'get',
    path: '/chat/stream',
    summary: 'Send a message in the query and stream the answer, for EventSource',
    spends: true,
    description: `${TURNS} ${STREAM}`,
    query: ChatQuery,
    produces: 'text/event-stream',
    example: STREAM_EXAMPLE,
    errors: ERRORS,
    job: ({ query, ...input }) => beginStream(input, query),
    follow: following(({ query }: Asking & { query: ChatRequest }) => query.user_id),
  }),

  route({
    method: 'get',
    path: '/chat/stream/:message_id',
    summary: 'Stream an answer from its beginning or after `Last-Event-ID`',
    description: STREAM,
    params: StreamParams,
    query: ByUser,
    produces: 'text/event-stream',
    example: STREAM_EXAMPLE,
    errors: ['ai.not_yours', 'turn.missing', 'conversation.denied'],
    stream: async ({ params, query, request, caller, edge }) => {
      const { message_id: messageId } = params
      const position = positionOf(request.header('last-event-id'))
      const turn = await turnFor(edge, whoOf(caller, query.user_id), { messageId })
      return followTurn(edge.hub, turn, position?.messageId === messageId ? position.seq : null)
    },
  }),
]

interface Asking {
  readonly edge: Edge
  readonly caller: Caller
  readonly request: EdgeRequest
}

/** The stream of the turn that was started; a reader who comes back with an event id of ours starts none. */
function following<I extends Asking>(userIdOf: (input: I) => string | undefined): Follow<I> {
  const who = (input: I): Who => whoOf(input.caller, userIdOf(input))
  return {
    resume: async (input): Promise<StreamSource | null> => {
      const position = positionOf(input.request.header('last-event-id'))
      if (position === null) return null
      const turn = await turnFor(input.edge, who(input), { messageId: position.messageId })
      return followTurn(input.edge.hub, turn, position.seq)
    },
    open: async (input, jobId) =>
      followTurn(input.edge.hub, await turnFor(input.edge, who(input), { jobId }), null),
  }
}
