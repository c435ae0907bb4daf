// Form that reads a document again, with another language, encoding or password.

import { openForm } from '../parts/dialog.js'

const ENCODINGS = ['windows-1252', 'windows-1251', 'windows-1250', 'iso-8859-15', 'utf-8', 'utf-16le', 'shift_jis', 'gb18030', 'big5', 'euc-kr', 'koi8-r', 'cp437', 'cp850', 'cp852']

/** Opens the form. `extract(query, json)` starts the reading. */
export const openReadForm = (record, extract) =>
  openForm('Read again', {
    operation: 'POST /api/v1/documents/{id}/extract',
    fields: ['force', 'language', 'encoding', 'password'],
    submit: 'Read',
    values: { force: true },
    set: {
      force: { type: 'boolean', label: 'Read all pages again', help: 'Otherwise only pages that are still unread.' },
      language: { label: 'Languages of the images', placeholder: 'deu+eng', help: 'Three letters each, joined by +. The default is set by the service.' },
      encoding: { label: 'Encoding of a text', suggestions: ENCODINGS, help: 'Only if letters look wrong.' },
      password: { inputType: 'password', autocomplete: 'new-password', help: 'Only if the file is encrypted.' },
    },
    send: ({ force, language, encoding, password }) => {
      const query = new URLSearchParams(Object.entries({ force: force ? 'true' : undefined, language, encoding }).filter(([, value]) => value !== undefined))
      return extract(query.size === 0 ? '' : `&${query}`, password === undefined ? undefined : { password })
    },
    done: (text) => text,
  })
