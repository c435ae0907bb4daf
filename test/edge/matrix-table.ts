import declaredPages from '../../edge/pages/pages.json' with { type: 'json' }

/**
 * Access rules with a line per operation and a status per caller. A `#` starts the name of a case of an operation.
 * `4xx` means that only the class of the refusal is defined.
 */

/**
 * Rules for `AUTH_LEVEL=rbac` in production without open areas. Owned rows belong to `owner`, and `other` is another
 * user.
 */
export const ACCESS_RULES = `
                                                       nobody owner other moderator admin
POST   /api/v1/auth/register                              200   200   200   200   200
POST   /api/v1/auth/token                                 200   200   200   200   200
GET    /api/v1/auth/me                                    401   200   200   200   200
POST   /api/v1/auth/refresh                               401   200   200   200   200
POST   /api/v1/auth/logout                                401   200   200   200   200
POST   /api/v1/auth/me/email                              401   201   201   201   201
GET    /api/v1/auth/me/email                              401   200   200   200   200
GET    /api/v1/auth/me/quotas                             401   200   200   200   200
DELETE /api/v1/auth/me/email                              401   204   204   204   204
POST   /api/v1/auth/me/export                             401   202   202   202   202
GET    /api/v1/auth/me/export                             401   200   200   200   200
GET    /api/v1/auth/me/export/:id                         401   200   404   404   404
DELETE /api/v1/auth/me                                    401   200   200   200   200
POST   /api/v1/auth/me/restore                            401   200   200   200   200
POST   /api/v1/auth/email-change/confirm                  200   200   200   200   200
POST   /api/v1/auth/email-change/refuse                   200   200   200   200   200
GET    /api/v1/auth/sessions                              401   200   200   200   200
DELETE /api/v1/auth/sessions                              401   204   204   204   204
DELETE /api/v1/auth/sessions/:session_id                  401   204   404   404   404
POST   /api/v1/auth/keys                                  401   201   201   201   201
GET    /api/v1/auth/keys                                  401   200   200   200   200
PATCH  /api/v1/auth/keys/:key_id                          401   200   404   404   200
DELETE /api/v1/auth/keys/:key_id                          401   204   404   404   204
GET    /api/v1/auth/totp                                  401   200   200   200   200
POST   /api/v1/auth/totp                                  401   200   200   200   200
POST   /api/v1/auth/totp/confirm                          401   200   200   200   200
POST   /api/v1/auth/totp/recovery-codes                   401   200   200   200   200
DELETE /api/v1/auth/totp                                  401   204   204   204   204
DELETE /api/v1/auth/users/:user_id/totp                   401   403   403   403   204
POST   /api/v1/auth/passkeys/sign-in/options              200   200   200   200   200
POST   /api/v1/auth/passkeys/sign-in                      200   200   200   200   200
POST   /api/v1/auth/passkeys/options                      401   200   200   200   200
POST   /api/v1/auth/passkeys                              401   201   201   201   201
GET    /api/v1/auth/passkeys                              401   200   200   200   200
PATCH  /api/v1/auth/passkeys/:passkey_id                  401   200   404   404   404
DELETE /api/v1/auth/passkeys/:passkey_id                  401   204   404   404   404
POST   /api/v1/auth/password-reset/request                200   200   200   200   200
POST   /api/v1/auth/password-reset/confirm                200   200   200   200   200
POST   /api/v1/auth/magic-link/request                    200   200   200   200   200
POST   /api/v1/auth/magic-link                            200   200   200   200   200
GET    /api/v1/auth/sign-in                               200   200   200   200   200
GET    /api/v1/auth/oidc                                  503   503   503   503   503
POST   /api/v1/auth/oidc/begin                            503   503   503   503   503
POST   /api/v1/auth/oidc/callback                         503   503   503   503   503
POST   /api/v1/auth/oidc/sign-in                          503   503   503   503   503
GET    /api/v1/auth/me/identities                         401   200   200   200   200
DELETE /api/v1/auth/me/identities/:identity_id            401   204   404   404   404
POST   /api/v1/auth/change-password                       401   200   200   200   200
POST   /api/v1/auth/verify-email                          200   200   200   200   200
POST   /api/v1/auth/resend-verification                   401   200   200   200   200
POST   /api/v1/auth/accept-invite                         401   200   400   400   400
GET    /api/v1/auth/users                                 401   403   403   200   200
POST   /api/v1/auth/users/import                          401   403   403   403   200
GET    /api/v1/auth/users/:user_id                        401   200   200   200   200
PATCH  /api/v1/auth/users/:user_id                        401   200   403   403   200
PATCH  /api/v1/auth/users/:user_id/deactivate             401   403   403   403   200
PATCH  /api/v1/auth/users/:user_id/activate               401   403   403   403   200
PATCH  /api/v1/auth/users/:user_id/role                   401   403   403   403   200
PATCH  /api/v1/auth/users/:user_id/role #one's own        401   403   403   403   200
GET    /api/v1/auth/users/:user_id/quotas                 401   403   403   403   200
PATCH  /api/v1/auth/users/:user_id/quotas                 401   403   403   403   204
DELETE /api/v1/auth/users/:user_id                        401   403   403   403   204
GET    /api/v1/auth/audit                                 401   403   403   403   200
GET    /api/v1/jobs/search                                401   200   200   200   200
GET    /api/v1/jobs/search #the owner's                   401   200   403   403   200
GET    /api/v1/jobs/failures                              401   200   200   200   200
GET    /api/v1/jobs/failures #the owner's                 401   200   403   403   200
POST   /api/v1/jobs/bulk                                  401   202   202   202   202
POST   /api/v1/jobs/bulk #the owner's                     401   202   403   403   202
GET    /api/v1/queues                                     401   403   403   403   200
PATCH  /api/v1/queues/:queue                              401   403   403   403   200
POST   /api/v1/queues/:queue/pause                        401   403   403   403   200
POST   /api/v1/queues/:queue/resume                       401   403   403   403   200
POST   /api/v1/workers/:worker_id/drain                   401   403   403   403   200
POST   /api/v1/workers/:worker_id/resume                  401   403   403   403   200
POST   /api/v1/webhooks                                   401   201   201   201   201
GET    /api/v1/webhooks                                   401   200   200   200   200
GET    /api/v1/webhooks/:endpoint_id                      401   200   404   404   200
PATCH  /api/v1/webhooks/:endpoint_id                      401   200   404   404   200
DELETE /api/v1/webhooks/:endpoint_id                      401   204   404   404   204
POST   /api/v1/webhooks/:endpoint_id/secret               401   200   404   404   200
POST   /api/v1/webhooks/:endpoint_id/challenge            401   202   404   404   202
POST   /api/v1/webhooks/:endpoint_id/test                 401   202   404   404   202
GET    /api/v1/webhooks/:endpoint_id/deliveries           401   200   404   404   200
GET    /api/v1/webhooks/:endpoint_id/deliveries/:delivery_id  401   200   404   404   200
POST   /api/v1/webhooks/:endpoint_id/deliveries/:delivery_id/send  401   202   404   404   202
POST   /api/v1/orgs                                       401   201   201   201   201
GET    /api/v1/orgs                                       401   200   200   200   200
GET    /api/v1/orgs/all                                   401   403   403   403   200
GET    /api/v1/orgs/memberships                           401   403   403   403   200
GET    /api/v1/blog/posts                                 200   200   200   200   200
GET    /api/v1/blog/posts/:post                           200   200   200   200   200
GET    /api/v1/blog/posts/:post #a draft                  404   404   404   404   404
GET    /api/v1/blog/feed.xml                              200   200   200   200   200
GET    /api/v1/blog/atom.xml                              200   200   200   200   200
GET    /api/v1/blog/feed.json                             200   200   200   200   200
GET    /api/v1/blog/sitemap.xml                           200   200   200   200   200
GET    /api/v1/blog/preview/:token                       200   200   200   200   200
GET    /api/v1/blog/admin/posts                           401   403   403   200   200
GET    /api/v1/blog/admin/posts/:post                     401   403   403   200   200
GET    /api/v1/blog/tags                                  200   200   200   200   200
POST   /api/v1/blog/posts                                 401   403   403   201   201
PUT    /api/v1/blog/posts/:post                           401   403   403   200   200
POST   /api/v1/blog/posts/:post/publish                   401   403   403   200   200
POST   /api/v1/blog/posts/:post/archive                   401   403   403   200   200
DELETE /api/v1/blog/posts/:post                           401   403   403   204   204
POST   /api/v1/blog/posts/:post/preview                   401   403   403   201   201
DELETE /api/v1/blog/posts/:post/preview                   401   403   403   204   204
GET    /api/v1/blog/posts/:post/revisions                 401   403   403   200   200
GET    /api/v1/blog/posts/:post/revisions/:revision       401   403   403   200   200
POST   /api/v1/blog/posts/:post/revisions/:revision/restore  401   403   403   200   200
POST   /api/v1/blog/tags                                  401   403   403   201   201
PUT    /api/v1/blog/tags/:tag_id                          401   403   403   200   200
DELETE /api/v1/blog/tags/:tag_id                          401   403   403   204   204
GET    /api/v1/blog/export                                401   403   403   200   200
POST   /api/v1/blog/import                                401   403   403   202   202
POST   /api/v1/documents                                  401   201   201   201   201
GET    /api/v1/documents                                  401   200   200   200   200
GET    /api/v1/documents/tags                             401   200   200   200   200
GET    /api/v1/documents/:id                              401   200   404   404   404
PATCH  /api/v1/documents/:id                              401   200   404   404   404
PATCH  /api/v1/documents/:id #supersede the owner's       401   200   400   400   400
DELETE /api/v1/documents/:id                              401   204   404   404   404
DELETE /api/v1/documents/:id #from the trash              401   204   404   404   404
POST   /api/v1/documents/bulk                             401   202   202   202   202
POST   /api/v1/documents/:id/restore                      401   200   404   404   404
POST   /api/v1/documents/:id/tags                         401   200   404   404   404
DELETE /api/v1/documents/:id/tags/:label                  401   200   404   404   404
GET    /api/v1/documents/:id/content                      401   200   404   404   404
POST   /api/v1/documents/:id/extract                      401   202   404   404   404
GET    /api/v1/documents/:id/extraction                   401   200   404   404   404
GET    /api/v1/documents/:id/pages                        401   200   404   404   404
GET    /api/v1/documents/:id/pages/:number                401   200   404   404   404
GET    /api/v1/documents/:id/pages/:number/image          401   200   404   404   404
GET    /api/v1/documents/:id/pages/:number/words          401   200   404   404   404
POST   /api/v1/comms/email/send                           401   403   403   403   202
POST   /api/v1/comms/sms/send                             401   403   403   403   202
POST   /api/v1/comms/call                                 401   403   403   403   202
GET    /api/v1/comms/status                               401   403   403   403   200
GET    /api/v1/comms/sends                                401   403   403   403   200
GET    /api/v1/comms/sends/:id                            401   403   403   403   200
DELETE /api/v1/comms/sends/:id                            401   403   403   403   200
DELETE /api/v1/comms/sends/:id #nobody's                  401   403   403   403   200
GET    /api/v1/comms/domains                              401   403   403   403   202
POST   /api/v1/comms/domains                              401   403   403   403   202
POST   /api/v1/comms/domains/:domain/check                401   403   403   403   202
GET    /api/v1/comms/suppressions                         401   403   403   403   200
DELETE /api/v1/comms/suppressions/:address                401   403   403   403   204
POST   /api/v1/comms/templates                            401   403   403   403   201
GET    /api/v1/comms/templates                            401   403   403   403   200
GET    /api/v1/comms/templates/:name                      401   403   403   403   200
PUT    /api/v1/comms/templates/:name                      401   403   403   403   200
DELETE /api/v1/comms/templates/:name                      401   403   403   403   204
POST   /api/v1/comms/templates/:name/preview              401   403   403   403   200
POST   /api/v1/comms/webhooks/twilio                      200   200   200   200   200
POST   /api/v1/comms/webhooks/twilio #unsigned            400   400   400   400   400
POST   /api/v1/comms/webhooks/resend                      200   200   200   200   200
POST   /api/v1/comms/webhooks/resend #unsigned            400   400   400   400   400
GET    /api/v1/jobs                                       401   200   200   200   200
GET    /api/v1/jobs/:job_id                               401   200   404   404   200
GET    /api/v1/jobs/:job_id #nobody's                     401   200   200   200   200
PATCH  /api/v1/jobs/:job_id                               401   200   404   404   200
PATCH  /api/v1/jobs/:job_id #nobody's                     401   403   403   403   200
DELETE /api/v1/jobs/:job_id                               401   202   404   404   202
DELETE /api/v1/jobs/:job_id #nobody's                     401   403   403   403   202
POST   /api/v1/jobs/:job_id/retry                         401   202   404   404   202
POST   /api/v1/jobs/:job_id/retry #nobody's               401   403   403   403   202
GET    /api/v1/jobs/:job_id/history                       401   200   404   404   200
GET    /api/v1/jobs/:job_id/details                       401   200   404   404   200
GET    /api/v1/jobs/:job_id/details #nobody's             401   200   200   200   200
GET    /api/v1/jobs/events                                401   200   200   200   200
GET    /api/v1/jobs/overview                              401   403   403   403   200
GET    /api/v1/jobs/overview/events                       401   403   403   403   200
GET    /api/v1/jobs/:job_id/events                        401   200   404   404   200
POST   /api/v1/batches                                    401   202   202   202   202
GET    /api/v1/batches/:batch_id                          401   200   404   404   200
GET    /api/v1/batches/:batch_id/jobs                     401   200   404   404   200
GET    /api/v1/batches/:batch_id/events                   401   200   404   404   200
POST   /api/v1/batches/:batch_id/jobs                     401   202   404   404   202
POST   /api/v1/batches/:batch_id/close                    401   200   404   404   200
POST   /api/v1/batches/:batch_id/retry                    401   202   404   404   202
DELETE /api/v1/batches/:batch_id                          401   202   404   404   202
POST   /api/v1/worker-queues                              401   201   201   201   201
GET    /api/v1/worker-queues                              401   200   200   200   200
GET    /api/v1/worker-queues/:name                        401   200   404   404   200
GET    /api/v1/worker-queues/:name #of a member           401   200   404   404   200
PATCH  /api/v1/worker-queues/:name                        401   200   404   404   200
PATCH  /api/v1/worker-queues/:name #of a member           401   403   404   404   200
DELETE /api/v1/worker-queues/:name                        401   204   404   404   204
DELETE /api/v1/worker-queues/:name #of a member           401   403   404   404   204
PUT    /api/v1/worker-queues/:name/tasks/:task            401   200   404   404   200
GET    /api/v1/worker-queues/:name/tasks/:task            401   200   404   404   200
DELETE /api/v1/worker-queues/:name/tasks/:task            401   204   404   404   204
POST   /api/v1/worker-queues/:name/claims                 401   200   404   404   200
POST   /api/v1/worker-queues/:name/claims #of a member    401   403   404   404   200
POST   /api/v1/workers/leases/:lease_id                   401   200   404   404   200
POST   /api/v1/workers/leases/:lease_id #of a member      401   404   404   404   200
POST   /api/v1/workers/leases/:lease_id/reports           401   200   404   404   200
DELETE /api/v1/workers/leases/:lease_id                   401   204   404   404   204
POST   /api/v1/schedules                                  401   201   201   201   201
GET    /api/v1/schedules                                  401   200   200   200   200
GET    /api/v1/schedules/:schedule_id                     401   200   404   404   200
GET    /api/v1/schedules/:schedule_id #built-in           401   404   404   404   200
PATCH  /api/v1/schedules/:schedule_id                     401   200   404   404   200
PATCH  /api/v1/schedules/:schedule_id #built-in           401   404   404   404   409
DELETE /api/v1/schedules/:schedule_id                     401   204   404   404   204
DELETE /api/v1/schedules/:schedule_id #built-in           401   404   404   404   409
POST   /api/v1/schedules/:schedule_id/run                 401   202   404   404   202
POST   /api/v1/schedules/:schedule_id/run #built-in       401   404   404   404   202
POST   /api/v1/schedules/:schedule_id/pause               401   200   404   404   200
POST   /api/v1/schedules/:schedule_id/pause #built-in     401   404   404   404   200
POST   /api/v1/schedules/:schedule_id/resume              401   200   404   404   200
POST   /api/v1/schedules/:schedule_id/resume #built-in    401   404   404   404   200
GET    /llm/status                                        401   200   200   200   200
GET    /llm/vendors                                       401   200   200   200   200
GET    /llm/modalities                                    401   200   200   200   200
GET    /llm/models                                        401   200   200   200   200
GET    /llm/prices                                        401   200   200   200   200
GET    /llm/current                                       401   200   200   200   200
POST   /llm/current                                       401   403   403   403   200
DELETE /llm/current                                       401   403   403   403   200
POST   /llm/sync                                          401   403   403   403   202
GET    /api/v1/tasks                                      401   200   200   200   200
POST   /api/v1/tasks/enqueue                              401   202   202   202   202
GET    /api/v1/tasks/result/:task_id                      401   200   404   404   200
GET    /api/v1/tasks/results                              401   200   200   200   200
POST   /api/v1/payment/checkout                           401   202   202   202   202
POST   /api/v1/payment/portal                             401   202   409   409   409
GET    /api/v1/payment/catalog                            401   202   202   202   202
GET    /api/v1/payment/transactions                       401   200   200   200   200
GET    /api/v1/payment/transactions/:id                   401   200   404   404   404
POST   /api/v1/payment/refund/:id                         401   202   404   404   404
GET    /api/v1/payment/subscriptions                      401   200   200   200   200
POST   /api/v1/payment/subscriptions/:id/cancel           401   202   404   404   404
POST   /api/v1/payment/subscriptions/:id/resume           401   202   404   404   404
POST   /api/v1/payment/subscriptions/:id/plan             401   202   404   404   404
GET    /api/v1/payment/disputes                           401   200   200   200   200
GET    /api/v1/payment/disputes/:id                       401   200   404   404   404
GET    /api/v1/payment/status                             401   200   200   200   200
GET    /api/v1/payment/revenue-timeseries                 401   200   200   200   200
GET    /api/v1/payment/admin/transactions                 401   403   403   403   200
GET    /api/v1/payment/admin/transactions/:id             401   403   403   403   200
POST   /api/v1/payment/admin/refund/:id                   401   403   403   403   202
GET    /api/v1/payment/admin/subscriptions                401   403   403   403   200
GET    /api/v1/payment/admin/disputes                     401   403   403   403   200
GET    /api/v1/payment/admin/disputes/:id                 401   403   403   403   200
GET    /api/v1/payment/admin/status                       401   403   403   403   200
GET    /api/v1/payment/admin/revenue-timeseries           401   403   403   403   200
POST   /api/v1/payment/webhook                            200   200   200   200   200
POST   /api/v1/payment/webhook #unsigned                  400   400   400   400   400
POST   /api/v1/ai/chat                                    401   202   202   202   202
POST   /api/v1/ai/chat #as the owner                      401   202   403   403   202
POST   /api/v1/ai/chat #in the owner's conversation       401   202   403   403   202
POST   /api/v1/ai/chat/stream                             401   202   202   202   202
GET    /api/v1/ai/chat/stream                             401   202   202   202   202
GET    /api/v1/ai/chat/stream/:message_id                 401   200   403   403   200
GET    /api/v1/ai/conversations                           401   200   200   200   200
GET    /api/v1/ai/conversations #of the owner             401   200   403   403   200
GET    /api/v1/ai/conversations/:conversation_id          401   200   403   403   200
GET    /api/v1/ai/conversations/:conversation_id #named   401   200   403   403   200
PATCH  /api/v1/ai/conversations/:conversation_id          401   200   403   403   200
POST   /api/v1/ai/conversations/:conversation_id/branch   401   201   403   403   201
DELETE /api/v1/ai/conversations/:conversation_id          401   204   403   403   204
GET    /api/v1/ai/agents                                  401   200   200   200   200
PATCH  /api/v1/ai/agents/:slug                            401   403   403   403   200
GET    /api/v1/ai/usage/stats                             401   200   200   200   200
GET    /api/v1/ai/usage/stats #of the owner               401   200   403   403   200
GET    /api/v1/ai/usage/budget                            401   200   200   200   200
GET    /api/v1/ai/usage/budget #of the owner              401   200   403   403   200
PATCH  /api/v1/ai/usage/budget/:account_id                401   403   403   403   204
GET    /api/v1/ai/sentiment/stats                         401   200   200   200   200
GET    /api/v1/ai/health                                  401   200   200   200   200
GET    /ai/version                                        200   200   200   200   200
POST   /v1/chat/completions                               401   504   504   504   504
GET    /v1/models                                         401   200   200   200   200
GET    /v1/models/:model                                  401   200   200   200   200
GET    /voice/catalog/tts/providers                       401   200   200   200   200
GET    /voice/catalog/tts/:provider_id/models             401   200   200   200   200
GET    /voice/catalog/tts/:provider_id/voices             401   200   200   200   200
GET    /voice/catalog/stt/providers                       401   200   200   200   200
GET    /voice/catalog/stt/:provider_id/models             401   200   200   200   200
GET    /voice/catalog/summary                             401   200   200   200   200
GET    /voice/settings                                    401   200   200   200   200
POST   /voice/settings                                    401   403   403   403   200
POST   /voice/preview                                     401   202   202   202   202
GET    /voice/preview/:voice_id                           401   202   202   202   202
POST   /voice/speech                                      401   202   202   202   202
GET    /voice/speech/:job_id                              401   200   404   404   200
DELETE /voice/speech/:job_id                              401   204   404   404   204
POST   /voice/transcriptions                              401   202   202   202   202
POST   /voice/transcriptions #a document of the owner     401   202   404   404   404
GET    /voice/transcriptions                              401   200   200   200   200
GET    /voice/transcriptions/:transcription_id            401   200   404   404   200
DELETE /voice/transcriptions/:transcription_id            401   204   404   404   204
POST   /rag/index                                         401   403   403   403   202
POST   /rag/index #documents                              401   202   202   202   202
POST   /rag/search                                        401   200   200   200   200
GET    /rag/collections                                   401   200   200   200   200
GET    /rag/collections/:name                             401   200   200   200   200
GET    /rag/collections/:name #documents                  401   200   404   404   200
GET    /rag/collections/:name/files                       401   200   200   200   200
GET    /rag/collections/:name/files #documents            401   200   404   404   200
DELETE /rag/collections/:name                             401   403   403   403   200
DELETE /rag/collections/:name #documents                  401   200   404   404   200
GET    /rag/health                                        401   200   200   200   200
GET    /api/v1/system/tables                              401   403   403   403   200
GET    /api/v1/system/spending                            401   403   403   403   200
GET    /setup                                             200   200   200   200   200
GET    /verify-email                                      200   200   200   200   200
GET    /email-change                                      200   200   200   200   200
GET    /email-change/refuse                               200   200   200   200   200
GET    /oidc                                              200   200   200   200   200
GET    /magic-link                                        200   200   200   200   200
GET    /password-reset                                    200   200   200   200   200
GET    /register                                          200   200   200   200   200
GET    /accept-invite                                     200   200   200   200   200
GET    /unsubscribe                                       200   200   200   200   200
POST   /unsubscribe                                       200   200   200   200   200
GET    /payment/success                                   200   200   200   200   200
GET    /payment/cancel                                    200   200   200   200   200
GET    /pages/pages.json                                  200   200   200   200   200
GET    /pages/:folder/:file                               200   200   200   200   200
GET    /health                                            200   200   200   200   200
GET    /ready                                             200   200   200   200   200
GET    /metrics                                           4xx   4xx   4xx   4xx   4xx
GET    /metrics #with METRICS_TOKEN                       200   200   200   200   200
GET    /openapi.json                                      200   200   200   200   200
GET    /docs                                              200   200   200   200   200
GET    /docs/:file                                        200   200   200   200   200
${declaredPages.map(({ path }) => `GET ${path} 200 200 200 200 200`).join('\n')}
`

/**
 * Rules for the roles of an organization, with `AUTH_LEVEL=rbac` in production. `outsider` and holders of system roles
 * are not members.
 */
export const RANK_RULES = `
                                                          nobody owner org-admin member outsider moderator admin
GET    /api/v1/orgs/:org_id                                  401   200   200   200   403   403   403
PATCH  /api/v1/orgs/:org_id                                  401   200   200   403   403   403   403
PATCH  /api/v1/orgs/:org_id #slug                            401   200   403   403   403   403   403
DELETE /api/v1/orgs/:org_id                                  401   204   403   403   403   403   204
POST   /api/v1/orgs/:org_id/transfer-ownership               401   200   403   403   403   403   200
GET    /api/v1/orgs/:org_id/members                          401   200   200   200   403   403   403
GET    /api/v1/orgs/:org_id/members/details                  401   200   200   200   403   403   403
POST   /api/v1/orgs/:org_id/members                          401   201   201   403   403   403   201
POST   /api/v1/orgs/:org_id/members #as admin                401   201   201   403   403   403   201
POST   /api/v1/orgs/:org_id/members #as owner                401   201   403   403   403   403   201
POST   /api/v1/orgs/:org_id/members/bulk                     401   201   201   403   403   403   201
POST   /api/v1/orgs/:org_id/members/bulk #as owner           401   201   403   403   403   403   201
PATCH  /api/v1/orgs/:org_id/members/:user_id                 401   200   200   403   403   403   200
PATCH  /api/v1/orgs/:org_id/members/:user_id #to owner       401   200   403   403   403   403   200
PATCH  /api/v1/orgs/:org_id/members/:user_id #an admin       401   200   200   403   403   403   200
PATCH  /api/v1/orgs/:org_id/members/:user_id #an owner       401   200   403   403   403   403   200
DELETE /api/v1/orgs/:org_id/members/me                       401   403   204   204   403   403   403
DELETE /api/v1/orgs/:org_id/members/:user_id                 401   204   204   403   403   403   204
DELETE /api/v1/orgs/:org_id/members/:user_id #an owner       401   403   403   403   403   403   403
POST   /api/v1/orgs/:org_id/invites                          401   201   201   403   403   403   403
POST   /api/v1/orgs/:org_id/invites #as owner                401   201   403   403   403   403   403
POST   /api/v1/orgs/:org_id/invites #who has an account      401   201   201   403   403   403   403
GET    /api/v1/orgs/:org_id/invites                          401   200   200   403   403   403   403
DELETE /api/v1/orgs/:org_id/invites/:invite_id               401   204   204   403   403   403   403
POST   /api/v1/orgs/:org_id/invites/:invite_id/resend        401   200   200   403   403   403   403
`
