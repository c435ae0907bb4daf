/** Errors of chats, conversations and agents: part of the table in `errors.ts`. */
export const aiErrors = {
  'ai.disabled': { detail: 'AI service error: AI is disabled. Set AI_ENABLED to true.' },
  'ai.missing_key': {
    detail: 'AI service error: Missing API key for {provider} provider. Set {setting} environment variable.',
  },
  'ai.refused': { detail: 'AI provider error: {reason}' },
  'ai.failed': { detail: 'AI provider error: {reason}', retry: 'later' },
  'ai.interrupted': { detail: 'AI provider error: the answer was cut off: {reason}' },
  'ai.restarted': {
    detail: 'AI provider error: the answer started over after some text; repeat the request',
  },
  'ai.unfinished': { detail: 'The answer takes longer than REQUEST_WAIT_SECONDS; ask for a stream instead' },
  'ai.not_yours': { detail: 'Only admins may use a user_id other than their own' },
  'agent.missing': { detail: 'Agent not found' },
  'agent.inactive': { detail: 'The agent is not active' },
  'agent.none': { detail: 'AI service error: the agent {slug} is not active' },
  'agent.no_fields': { detail: 'No fields to update' },
  'conversation.missing': { detail: 'Conversation not found' },
  'conversation.unknown': { detail: 'Invalid conversation_id: there is no such conversation' },
  'conversation.denied': { detail: 'Access denied: the conversation belongs to another user' },
  'conversation.gone': { detail: 'The conversation was deleted before this turn ran' },
  'message.missing': { detail: 'Message not found in this conversation' },
  'message.unknown': { detail: 'Invalid {field}: the conversation has no such message' },
  'message.pending': { detail: 'An answer of this branch is still pending; wait until it ends' },
  'message.no_calls': { detail: 'The last answer of the branch asks for no tools' },
  'message.unmatched_calls': {
    detail: 'tool_results must have one result for each call of the last answer: {ids}',
  },
  'message.documents_missing': { detail: 'No such documents: {ids}' },
  'message.documents_unread': {
    detail: 'Documents without text: {ids}. Extract them first (POST /documents/ID/extract)',
  },
  'turn.missing': { detail: 'Message not found' },
  'turn.stopped': { detail: 'The answer was stopped' },
  'turn.failed': { detail: 'The model failed to answer' },
} as const
