// The name of a user as certificates have it. Pure.

/** Names that useradd(8) accepts, with capital letters and dots as well. None of them needs quotes in the text of a certificate's names. */
const USER_NAME = /^[A-Za-z_][A-Za-z0-9_.-]{0,31}$/;

export const isUserName = (text: string): boolean => USER_NAME.test(text);
