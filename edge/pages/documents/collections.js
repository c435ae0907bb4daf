// Collections that questions about documents search.

import { call } from '../parts/api.js'
import { callAndWait } from '../parts/jobs.js'

/**
 * Returns the name of the collection of documents. Collections share one namespace. The digests of the files make the
 * name unguessable, so no other account can take it.
 */
export function collectionOf(documents) {
  const [{ id, sha256 }] = documents
  if (documents.length === 1) return `document-${id}-${sha256.slice(0, 16)}`
  const ids = documents.map((one) => one.id)
  const sum = documents.reduce((all, one) => all ^ BigInt(`0x${one.sha256}`) ^ (BigInt(one.id) << 128n), 0n)
  return `documents-${Math.min(...ids)}-${ids.length}-${sum.toString(16).slice(0, 40)}`
}

/** Creates the collection if it is missing. The service then keeps it up to date. */
export async function ensureCollection(collection, documents) {
  try {
    await call('GET', `/rag/collections/${collection}`)
  } catch (error) {
    if (error.status !== 404) throw error
    await callAndWait('POST', '/rag/index', { json: { collection_name: collection, documents: { ids: documents.map(({ id }) => Number(id)) } } })
  }
}

export const deleteCollection = (name) => call('DELETE', `/rag/collections/${name}`)

/** Returns true if a question made the collection, whose name means nothing to people. */
export const isOfQuestion = (name) => /^documents?-\d+-[\da-f-]+$/.test(name)
