/** The errors of quotas, in the table of `errors.ts`. */
const more = 'delete some, or ask an admin for more'

export const quotaErrors = {
  'quota.documents': {
    detail: `The account would have more than its {quota} documents (QUOTA_DOCUMENTS); ${more}`,
    code: 'quota.documents',
  },
  'quota.bytes': {
    detail: `The account would have more than its {quota} bytes of documents (QUOTA_BYTES); ${more}`,
    code: 'quota.bytes',
  },
  'quota.file_bytes': {
    detail: 'The file alone is larger than the {quota} bytes that the account may have (QUOTA_BYTES)',
    code: 'quota.bytes',
  },
  'quota.pages': {
    detail: `The account would have more than its {quota} pages of documents (QUOTA_PAGES); ${more}`,
    code: 'quota.pages',
  },
  'quota.organizations': {
    detail: `The account would have created more than its {quota} organizations (QUOTA_ORGANIZATIONS); ${more}`,
    code: 'quota.organizations',
  },
  'quota.keys': {
    detail: `The account would have more than its {quota} API keys (QUOTA_KEYS); ${more}`,
    code: 'quota.keys',
  },
  'quota.webhook_endpoints': {
    detail: `The account would have more than its {quota} webhook endpoints (QUOTA_WEBHOOK_ENDPOINTS); ${more}`,
    code: 'quota.webhook_endpoints',
  },
  'quota.pending_deliveries': {
    detail: 'The account has as many pending deliveries as it may have (QUOTA_PENDING_DELIVERIES)',
    code: 'quota.pending_deliveries',
  },
  'quota.conversations': {
    detail: `The account would have more than its {quota} conversations (QUOTA_CONVERSATIONS); ${more}`,
    code: 'quota.conversations',
  },
  'quota.collections': {
    detail: `The account would have more than its {quota} collections (QUOTA_COLLECTIONS); ${more}`,
    code: 'quota.collections',
  },
  'quota.waiting_jobs': {
    detail:
      'The account would have more waiting jobs than its quota (QUOTA_WAITING_JOBS); try again when some of them have run',
    retry: 'later',
    code: 'quota.waiting_jobs',
  },
} as const
