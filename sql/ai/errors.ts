/** Errors of chats, conversations and agents: part of the table in `errors.ts`. */
export const aiErrors = {
  'ai.disabled': { detail: 'AI service error: AI is disabled. Set AI_ENABLED to true.' },
  'ai.missing_key': {
    detail: 'AI service error: Missing API key for {provider} provider. Set {setting} environment variable.',
  },
  'ai.refused': { detail: 'AI provider error: {reason}' },
  'ai.failed': { detail: 'AI provider error: {reason}', retry: 'later' },
  'ai.interrupted': { detail: 'AI provider error: the answer was cut off: {reason}' },
  'ai.not_yours': { detail: 'Only admins may use a user_id other than their own' },
  'agent.missing': { detail: 'Agent not found' },
  'agent.inactive': { detail: 'The agent is not active' },
  'agent.none': { detail: 'AI service error: the agent {slug} is not active' },
  'agent.no_fields': { detail: 'No fields to update' },
  'conversation.missing': { detail: 'Conversation not found' },
  'conversation.unknown': { detail: 'Invalid conversation_id: there is no such conversation' },
  'conversation.denied': { detail: 'Access denied: the conversation belongs to another user' },
  'conversation.gone': { detail: 'The conversation was deleted before this turn ran' },
  'turn.missing': { detail: 'Message not found' },
  'turn.stopped': { detail: 'The answer was stopped' },
  'turn.failed': { detail: 'The model failed to answer' },
} as const
