/**
 * Access rules that depend on the deployment, for areas that can be open and for editors. The format is that of
 * `matrix-table.ts`.
 * `open-` callers use a development edge. `basic-` callers use an edge with `AUTH_LEVEL=basic` and no open areas.
 * `none-nobody` uses an edge with `AUTH_LEVEL=none`.
 */
export const LEVEL_RULES = `
                                                     open-nobody open-other basic-nobody basic-other none-nobody
GET    /api/v1/blog/admin/posts                           401   403   401   200   200
GET    /api/v1/blog/admin/posts/:post                     401   403   401   200   200
POST   /api/v1/blog/posts                                 401   403   401   201   201
PUT    /api/v1/blog/posts/:post                           401   403   401   200   200
POST   /api/v1/blog/posts/:post/publish                   401   403   401   200   200
POST   /api/v1/blog/posts/:post/archive                   401   403   401   200   200
DELETE /api/v1/blog/posts/:post                           401   403   401   204   204
POST   /api/v1/blog/posts/:post/preview                   401   403   401   201   201
DELETE /api/v1/blog/posts/:post/preview                   401   403   401   204   204
GET    /api/v1/blog/posts/:post/revisions                 401   403   401   200   200
GET    /api/v1/blog/posts/:post/revisions/:revision       401   403   401   200   200
POST   /api/v1/blog/posts/:post/revisions/:revision/restore  401   403   401   200   200
POST   /api/v1/blog/tags                                  401   403   401   201   201
PUT    /api/v1/blog/tags/:tag_id                          401   403   401   200   200
DELETE /api/v1/blog/tags/:tag_id                          401   403   401   204   204
GET    /api/v1/blog/export                                401   403   401   200   200
POST   /api/v1/blog/import                                401   403   401   202   202
POST   /api/v1/comms/email/send                           202   202   401   202   202
POST   /api/v1/comms/sms/send                             202   202   401   202   202
POST   /api/v1/comms/call                                 202   202   401   202   202
GET    /api/v1/comms/status                               200   200   401   200   200
GET    /api/v1/comms/sends                                200   200   401   200   200
GET    /api/v1/comms/sends/:id                            404   404   401   404   200
DELETE /api/v1/comms/sends/:id                            404   404   401   404   200
DELETE /api/v1/comms/sends/:id #nobody's                  403   403   401   403   200
GET    /api/v1/comms/domains                              202   202   401   202   202
POST   /api/v1/comms/domains                              202   202   401   202   202
POST   /api/v1/comms/domains/:domain/check                202   202   401   202   202
GET    /api/v1/comms/suppressions                         401   403   401   403   200
DELETE /api/v1/comms/suppressions/:address                401   403   401   403   204
POST   /api/v1/comms/templates                            401   403   401   403   201
GET    /api/v1/comms/templates                            200   200   401   200   200
GET    /api/v1/comms/templates/:name                      200   200   401   200   200
PUT    /api/v1/comms/templates/:name                      401   403   401   403   200
DELETE /api/v1/comms/templates/:name                      401   403   401   403   204
POST   /api/v1/comms/templates/:name/preview              200   200   401   200   200
GET    /api/v1/jobs                                       200   200   401   200   200
GET    /api/v1/jobs/:job_id                               404   404   401   404   200
GET    /api/v1/jobs/:job_id #nobody's                     200   200   401   200   200
PATCH  /api/v1/jobs/:job_id                               404   404   401   404   200
PATCH  /api/v1/jobs/:job_id #nobody's                     403   403   401   403   200
DELETE /api/v1/jobs/:job_id                               404   404   401   404   202
DELETE /api/v1/jobs/:job_id #nobody's                     403   403   401   403   202
POST   /api/v1/jobs/:job_id/retry                         404   404   401   404   202
POST   /api/v1/jobs/:job_id/retry #nobody's               403   403   401   403   202
GET    /api/v1/jobs/:job_id/history                       404   404   401   404   200
GET    /api/v1/jobs/:job_id/details                       404   404   401   404   200
GET    /api/v1/jobs/:job_id/details #nobody's             200   200   401   200   200
GET    /api/v1/jobs/events                                200   200   401   200   200
GET    /api/v1/jobs/overview                              401   403   401   403   200
GET    /api/v1/jobs/overview/events                       401   403   401   403   200
GET    /api/v1/jobs/:job_id/events                        404   404   401   404   200
GET    /llm/status                                        200   200   401   200   200
GET    /llm/vendors                                       200   200   401   200   200
GET    /llm/modalities                                    200   200   401   200   200
GET    /llm/models                                        200   200   401   200   200
GET    /llm/prices                                        200   200   401   200   200
GET    /llm/current                                       200   200   401   200   200
POST   /llm/current                                       401   403   401   403   200
DELETE /llm/current                                       401   403   401   403   200
POST   /llm/sync                                          401   403   401   403   202
GET    /api/v1/tasks                                      200   200   401   200   200
POST   /api/v1/tasks/enqueue                              202   202   401   202   202
GET    /api/v1/tasks/result/:task_id                      404   404   401   404   200
GET    /api/v1/tasks/results                              200   200   401   200   200
POST   /api/v1/ai/chat                                    202   202   401   202   202
POST   /v1/chat/completions                               504   504   401   504   504
GET    /v1/models                                         200   200   401   200   200
GET    /v1/models/:model                                  200   200   401   200   200
POST   /api/v1/ai/chat #as the owner                      202   403   401   403   202
POST   /api/v1/ai/chat #in the owner's conversation       403   403   401   403   403
POST   /api/v1/ai/chat/stream                             202   202   401   202   202
GET    /api/v1/ai/chat/stream                             202   202   401   202   202
GET    /api/v1/ai/chat/stream/:message_id                 403   403   401   403   403
GET    /api/v1/ai/conversations                           200   200   401   200   200
GET    /api/v1/ai/conversations #of the owner             200   403   401   403   200
GET    /api/v1/ai/conversations/:conversation_id          403   403   401   403   403
GET    /api/v1/ai/conversations/:conversation_id #named   403   403   401   403   200
PATCH  /api/v1/ai/conversations/:conversation_id          403   403   401   403   403
POST   /api/v1/ai/conversations/:conversation_id/branch   403   403   401   403   403
DELETE /api/v1/ai/conversations/:conversation_id          403   403   401   403   403
GET    /api/v1/ai/agents                                  200   200   401   200   200
PATCH  /api/v1/ai/agents/:slug                            200   200   401   200   200
GET    /api/v1/ai/usage/stats                             200   200   401   200   200
GET    /api/v1/ai/usage/stats #of the owner               200   403   401   403   200
GET    /api/v1/ai/usage/budget                            200   200   401   200   200
GET    /api/v1/ai/usage/budget #of the owner              200   403   401   403   200
PATCH  /api/v1/ai/usage/budget/:account_id                401   403   401   403   204
GET    /api/v1/ai/sentiment/stats                         200   200   401   200   200
GET    /api/v1/ai/health                                  200   200   401   200   200
GET    /voice/catalog/tts/providers                       200   200   401   200   200
GET    /voice/catalog/tts/:provider_id/models             200   200   401   200   200
GET    /voice/catalog/tts/:provider_id/voices             200   200   401   200   200
GET    /voice/catalog/stt/providers                       200   200   401   200   200
GET    /voice/catalog/stt/:provider_id/models             200   200   401   200   200
GET    /voice/catalog/summary                             200   200   401   200   200
GET    /voice/settings                                    200   200   401   200   200
POST   /voice/settings                                    200   200   401   200   200
POST   /voice/preview                                     202   202   401   202   202
GET    /voice/preview/:voice_id                           202   202   401   202   202
POST   /voice/speech                                      202   202   401   202   202
GET    /voice/speech/:job_id                              404   404   401   404   200
DELETE /voice/speech/:job_id                              404   404   401   404   204
POST   /rag/index                                         202   202   401   202   202
POST   /rag/index #documents                              401   202   401   202   202
POST   /rag/search                                        200   200   401   200   200
GET    /rag/collections                                   200   200   401   200   200
GET    /rag/collections/:name                             200   200   401   200   200
GET    /rag/collections/:name #documents                  404   404   401   404   200
GET    /rag/collections/:name/files                       200   200   401   200   200
GET    /rag/collections/:name/files #documents            404   404   401   404   200
DELETE /rag/collections/:name                             200   200   401   200   200
DELETE /rag/collections/:name #documents                  404   404   401   404   200
GET    /rag/health                                        200   200   401   200   200
`
