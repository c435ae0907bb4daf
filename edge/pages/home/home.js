// Home page: whether all is well, and the way to every page.

import { h } from '../parts/dom.js'
import { makeSignIn } from '../parts/sign-in.js'

export const page = ({ account }) => (account === null ? [makeSignIn(() => location.reload())] : [h('p', {}, `Signed in as ${account.email}`)])
