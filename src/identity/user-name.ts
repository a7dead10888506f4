// Which names of users a certificate can carry. Pure.

/** Letters, digits, `_`, `-` and `.`; the first character is a letter or `_`; 32 characters at most. No such name needs quotes in the text of a certificate's alternative names. */
const USER_NAME = /^[A-Za-z_][A-Za-z0-9_.-]{0,31}$/;

export const isUserName = (text: string): boolean => USER_NAME.test(text);
