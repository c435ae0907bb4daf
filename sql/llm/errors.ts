/** Errors of the model catalog: part of the table in `errors.ts`. */
export const llmErrors = {
  'llm.list_failed': {
    detail: 'The model list could not be fetched: {reason}',
    retry: 'later',
  },
  'llm.list_refused': { detail: 'The model list was rejected: {reason}' },
  'llm.model_missing': { detail: 'Model not found in the catalog' },
  'llm.model_disabled': { detail: 'The model is disabled: its vendor withdrew it' },
  'llm.model_no_chat': { detail: 'The model does not support text chat' },
  'llm.provider_needed': {
    detail: 'Several providers offer this model; specify one of: {providers}',
  },
} as const
