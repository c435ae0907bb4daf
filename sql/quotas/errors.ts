/** Errors of quotas. `errors.ts` adds them to its table. */
const QUOTA_REMEDY = 'delete some or ask an admin for a higher quota'

export const quotaErrors = {
  'quota.documents': {
    detail: `This would exceed the account quota of {quota} documents (QUOTA_DOCUMENTS); ${QUOTA_REMEDY}`,
  },
  'quota.bytes': {
    detail: `This would exceed the account quota of {quota} bytes of documents (QUOTA_BYTES); ${QUOTA_REMEDY}`,
  },
  'quota.file_bytes': {
    detail: 'The file alone exceeds the account quota of {quota} bytes (QUOTA_BYTES)',
  },
  'quota.pages': {
    detail: `This would exceed the account quota of {quota} pages of documents (QUOTA_PAGES); ${QUOTA_REMEDY}`,
  },
  'quota.organizations': {
    detail: `This would exceed the account quota of {quota} created organizations (QUOTA_ORGANIZATIONS); ${QUOTA_REMEDY}`,
  },
  'quota.keys': {
    detail: `This would exceed the account quota of {quota} API keys (QUOTA_KEYS); ${QUOTA_REMEDY}`,
  },
  'quota.webhook_endpoints': {
    detail: `This would exceed the account quota of {quota} webhook endpoints (QUOTA_WEBHOOK_ENDPOINTS); ${QUOTA_REMEDY}`,
  },
  'quota.pending_deliveries': {
    detail: 'The account has reached its quota of pending deliveries (QUOTA_PENDING_DELIVERIES)',
  },
  'quota.conversations': {
    detail: `This would exceed the account quota of {quota} conversations (QUOTA_CONVERSATIONS); ${QUOTA_REMEDY}`,
  },
  'quota.collections': {
    detail: `This would exceed the account quota of {quota} collections (QUOTA_COLLECTIONS); ${QUOTA_REMEDY}`,
  },
  'quota.speech_characters': {
    detail: `This would exceed the account quota of {quota} characters of stored speeches (QUOTA_SPEECH_CHARACTERS); ${QUOTA_REMEDY}`,
  },
  'quota.schedules': {
    detail: `This would exceed the account quota of {quota} schedules (QUOTA_SCHEDULES); ${QUOTA_REMEDY}`,
  },
  'quota.worker_queues': {
    detail: `This would exceed the account quota of {quota} worker queues (QUOTA_WORKER_QUEUES); ${QUOTA_REMEDY}`,
  },
  'quota.waiting_jobs': {
    detail:
      'This would exceed the account quota of waiting jobs (QUOTA_WAITING_JOBS); try again when some have run',
    retry: 'free',
  },
} as const
