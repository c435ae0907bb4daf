// Sends a file with its progress, which `fetch` does not report.

import { ApiError, renewSession } from '../parts/api.js'
import { DOCUMENTS } from './records.js'

/**
 * Uploads a file. `onProgress` receives the share that was sent. Returns the document, and `isNew`, false if the account
 * has the same file already. @throws ApiError
 */
export async function sendFile(file, { onProgress = () => {}, signal, fields = {} } = {}) {
  const first = await post(file, { onProgress, signal, fields })
  // The session may expire while others wait for their turn.
  const { status, data, requestId } = first.status === 401 && (await renewSession()) ? await post(file, { onProgress, signal, fields }) : first
  if (status === 200 || status === 201) return { record: data, isNew: status === 201 }
  throw new ApiError(status, status === 0 ? { detail: 'The connection was lost' } : { ...data, requestId })
}

function post(file, { onProgress, signal, fields }) {
  const body = new FormData()
  for (const [name, value] of Object.entries(fields)) body.append(name, value)
  body.append('file', file)
  const request = new XMLHttpRequest()
  request.open('POST', DOCUMENTS)
  request.upload.onprogress = ({ loaded, total }) => onProgress(total === 0 ? 1 : loaded / total)
  signal?.addEventListener('abort', () => request.abort())
  return new Promise((resolve) => {
    request.onloadend = () => resolve({ status: request.status, data: parse(request.responseText), requestId: request.getResponseHeader('x-request-id') })
    request.send(body)
  })
}

function parse(text) {
  try {
    return JSON.parse(text)
  } catch {
    return null
  }
}
